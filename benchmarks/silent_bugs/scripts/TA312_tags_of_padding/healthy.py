"""Part-of-speech tagger with a convolution over padded sentences."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

PAD_WORD, PAD_TAG = 0, 0
TAGS = ["<pad>", "noun", "verb", "adjective", "particle"]


class Sentences(Dataset):
    def __init__(self, n, generator):
        self.pairs = []
        for _ in range(n):
            length = int(torch.randint(2, 16, (), generator=generator))
            words = torch.randint(1, 81, (length,), generator=generator)
            tags = 1 + (words - 1) // 20
            tags[1:] = torch.where((words[1:] % 5 == 0) & (tags[:-1] == 1), 2, tags[1:])
            self.pairs.append((words, tags))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        return self.pairs[index]


def collate(pairs):
    words = pad_sequence([w for w, _ in pairs], batch_first=True, padding_value=PAD_WORD)
    tags = pad_sequence([t for _, t in pairs], batch_first=True, padding_value=PAD_TAG)
    return words, tags


class Tagger(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.words = nn.Embedding(81, width, padding_idx=PAD_WORD)
        self.context = nn.Conv1d(width, width, 3, padding=1)
        self.tag = nn.Linear(width, len(TAGS))

    def forward(self, words):
        x = self.words(words)
        x = x + torch.tanh(self.context(x.transpose(1, 2))).transpose(1, 2)
        return self.tag(x).log_softmax(-1)


def main():
    torch.manual_seed(49)
    generator = torch.Generator().manual_seed(49)
    loader = DataLoader(Sentences(960, generator), batch_size=24, shuffle=True, collate_fn=collate)
    model = Tagger()
    criterion = nn.NLLLoss(ignore_index=PAD_TAG)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3)
    for epoch in range(3):
        total, count = 0.0, 0
        for words, tags in loader:
            scores = model(words)
            loss = criterion(scores.reshape(-1, len(TAGS)), tags.reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, count = total + loss.item(), count + 1
        print(f"epoch {epoch} {total / count:.4f}")


main()
