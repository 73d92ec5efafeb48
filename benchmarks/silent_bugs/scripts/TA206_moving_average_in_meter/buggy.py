"""Next-character model with a smoothed loss for the log."""

import torch
import torch.nn as nn

TEXT = "the quick brown fox jumps over the lazy dog and runs back into the dark green forest again. " * 20


class Smoothed:
    def __init__(self, momentum=0.95):
        self.momentum = momentum
        self.value = None

    def update(self, new):
        if self.value is None:
            self.value = new
        else:
            self.value = self.momentum * self.value + (1 - self.momentum) * new  # bug: TA206 (static)
        return self.value


class CharModel(nn.Module):
    def __init__(self, alphabet, width=32):
        super().__init__()
        self.embed = nn.Embedding(alphabet, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, alphabet)

    def forward(self, ids):
        return self.out(self.rnn(self.embed(ids))[0])


def windows(ids, length, batch, generator):
    starts = torch.randint(len(ids) - length - 1, (batch,), generator=generator)
    chunk = torch.stack([ids[s : s + length + 1] for s in starts.tolist()])
    return chunk[:, :-1], chunk[:, 1:]


def main():
    torch.manual_seed(28)
    generator = torch.Generator().manual_seed(28)
    alphabet = sorted(set(TEXT))
    ids = torch.tensor([alphabet.index(c) for c in TEXT])
    model = CharModel(len(alphabet))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    meter = Smoothed()
    for step in range(120):
        x, y = windows(ids, 24, 16, generator)
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()  # bug: TA206 (runtime)
        optimizer.step()
        meter.update(loss)
        if step % 30 == 29:
            print(step + 1, f"{meter.value:.4f}")


if __name__ == "__main__":
    main()
