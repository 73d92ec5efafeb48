"""Random crops and flips of signals, made by a transform object in two workers."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Augment:
    def __init__(self, length, seed=0):
        self.length = length
        self.rng = random.Random(seed)  # bug: TA307 (runtime)

    def __call__(self, signal):
        start = self.rng.randrange(signal.shape[-1] - self.length)
        signal = signal[..., start : start + self.length]
        if self.rng.random() < 0.5:
            signal = -signal
        return signal


class Signals(Dataset):
    def __init__(self, n, transform):
        generator = torch.Generator().manual_seed(45)
        self.label = torch.randint(3, (n,), generator=generator)
        t = torch.arange(80)
        wave = torch.sin(t * (0.2 + 0.15 * self.label[:, None]))
        self.signal = (wave + 0.4 * torch.randn(n, 80, generator=generator)).unsqueeze(1)
        self.transform = transform

    def __len__(self):
        return len(self.signal)

    def __getitem__(self, index):
        return self.transform(self.signal[index]), self.label[index]


def build():
    return nn.Sequential(
        nn.Conv1d(1, 12, 9, stride=2, padding=4),
        nn.LeakyReLU(),
        nn.Conv1d(12, 12, 9, stride=2, padding=4),
        nn.LeakyReLU(),
        nn.AdaptiveMaxPool1d(1),
        nn.Flatten(),
        nn.Linear(12, 3),
    )


def main():
    torch.manual_seed(45)
    data = Signals(480, Augment(64))
    loader = DataLoader(data, batch_size=16, shuffle=True, num_workers=2)
    model = build()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(3):
        total = 0.0
        for signal, label in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(signal), label)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total / len(loader))


if __name__ == "__main__":
    main()
