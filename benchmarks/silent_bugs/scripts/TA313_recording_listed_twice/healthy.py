"""Replays recordings in order, one pass, to adapt a predictor online."""

import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Dataset

RECORDINGS = ["2021-harbour", "2021-bridge", "2022-harbour", "2022-bridge"]


class Recording(Dataset):
    """Windows of one recording, in the order of time."""

    def __init__(self, name, windows=640, width=20):
        seed = sum(ord(letter) * (i + 1) for i, letter in enumerate(name))
        generator = torch.Generator().manual_seed(seed)
        steps = torch.randn(windows + width, generator=generator)
        series = torch.zeros(windows + width)
        for t in range(1, len(series)):
            series[t] = 0.92 * series[t - 1] + 0.3 * steps[t]
        self.series, self.windows, self.width = series, windows, width

    def __len__(self):
        return self.windows

    def __getitem__(self, index):
        return self.series[index : index + self.width], self.series[index + self.width]


class Predictor(nn.Module):
    def __init__(self, width=20, hidden=24):
        super().__init__()
        self.inner = nn.Linear(width, hidden)
        self.outer = nn.Linear(hidden, 1)

    def forward(self, window):
        return self.outer(torch.tanh(self.inner(window)))[:, 0]


def main():
    torch.manual_seed(50)
    data = ConcatDataset([Recording(name) for name in RECORDINGS])
    loader = DataLoader(data, batch_size=32, shuffle=False)
    model = Predictor()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    running = 0.0
    for step, (window, following) in enumerate(loader, 1):
        loss = nn.functional.mse_loss(model(window), following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
        if step % 20 == 0:
            print(step, running / 20)
            running = 0.0


if __name__ == "__main__":
    main()
