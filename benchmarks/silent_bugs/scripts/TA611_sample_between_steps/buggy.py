"""A model of names, letter by letter."""

import torch
import torch.nn.functional as F
from torch import nn

LETTERS = "abcdefghijklmno."
SYLLABLES = ["ba", "be", "di", "do", "ka", "ko", "la", "le", "mi", "mo", "na", "ne"]


class NameModel(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(len(LETTERS), width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.dropout = nn.Dropout(0.25)
        self.out = nn.Linear(width, len(LETTERS))

    def forward(self, letters, state=None):
        hidden, state = self.gru(self.dropout(self.embed(letters)), state)
        return self.out(self.dropout(hidden)), state


@torch.no_grad()
def sample(model, length=8):
    model.eval()  # bug: TA611
    letter, state, name = torch.randint(len(LETTERS) - 1, (1, 1)), None, ""
    for _ in range(length):
        name += LETTERS[letter.item()]
        logits, state = model(letter, state)
        letter = torch.multinomial(logits[0].softmax(-1), 1)
    return name


def names(batch):
    picks = torch.randint(len(SYLLABLES), (batch, 3))
    words = ["".join(SYLLABLES[i] for i in row) + "." for row in picks.tolist()]
    return torch.tensor([[LETTERS.index(c) for c in word] for word in words])


def main(steps=150):
    torch.manual_seed(140)
    model = NameModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    model.train()
    recent = []
    for step in range(1, steps + 1):
        batch = names(32)
        logits, _ = model(batch[:, :-1])
        loss = F.cross_entropy(logits.transpose(1, 2), batch[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        recent.append(loss.item())
        if step % 25 == 0:
            print(f"step {step}: {sum(recent[-25:]) / 25:.3f} {sample(model)}")


main()
