"""Character-level classification of words: which language?"""

import itertools
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

VOWELS, CONSONANTS = "aeiou", "bdfgklmnprst"
ALPHABET = VOWELS + CONSONANTS


@dataclass
class Options:
    epochs: int = 10
    batch_size: int = 32
    lr: float = 1e-2
    max_batches: int | None = None


class Words(Dataset):
    """Two invented languages, one of open syllables and one of closed ones."""

    def __init__(self, count, generator):
        def pick(letters):
            return letters[torch.randint(len(letters), (1,), generator=generator).item()]

        self.items = []
        for index in range(count):
            language = index % 2
            shape = "cvcvcv" if language == 0 else "cvccvc"
            word = "".join(pick(VOWELS if letter == "v" else CONSONANTS) for letter in shape)
            self.items.append((torch.tensor([ALPHABET.index(letter) for letter in word]), language))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


class LanguageGuess(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.embed = nn.Embedding(len(ALPHABET), width)
        self.conv = nn.Conv1d(width, width, 3)
        self.out = nn.Linear(width, 2)

    def forward(self, letters):
        return self.out(torch.relu(self.conv(self.embed(letters).mT)).amax(-1))


def main(options):
    torch.manual_seed(190)
    data = Words(640, torch.Generator().manual_seed(191))
    loader = DataLoader(data, batch_size=options.batch_size, shuffle=True)
    model = LanguageGuess()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    for epoch in range(options.epochs):
        losses = []
        for letters, language in itertools.islice(loader, 8):  # bug: TA618
            loss = criterion(model(letters), language)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}")


if __name__ == "__main__":
    main(Options())
