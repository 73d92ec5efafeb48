"""Streams windows of a long measurement to a forecaster."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

HISTORY, AHEAD, WORKERS = 32, 4, 2


def measurement(points):
    t = torch.arange(points)
    trend = torch.sin(2 * math.pi * t / 50) + 0.5 * torch.sin(2 * math.pi * t / 13)
    noise = torch.randn(points, generator=torch.Generator().manual_seed(46))
    return trend + 0.1 * noise


class Windows(IterableDataset):
    def __init__(self, series, stride=1):
        super().__init__()
        self.series = series
        self.stride = stride

    def __iter__(self):
        first, last = 0, len(self.series) - HISTORY - AHEAD
        for start in range(first, last, self.stride):
            window = self.series[start : start + HISTORY + AHEAD]
            yield window[:HISTORY], window[HISTORY:]


class Forecaster(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.hidden = nn.Linear(HISTORY, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.ahead = nn.Linear(hidden, AHEAD)

    def forward(self, history):
        return self.ahead(torch.nn.functional.gelu(self.norm(self.hidden(history))))


def main():
    torch.manual_seed(46)
    windows = Windows(measurement(1800))
    loader = DataLoader(windows, batch_size=32, num_workers=WORKERS)  # bug: TA308
    model = Forecaster()
    optimizer = torch.optim.RAdam(model.parameters(), lr=3e-3)
    criterion = nn.SmoothL1Loss()
    for epoch in range(2):
        batches, total = 0, 0.0
        for history, future in loader:
            loss = criterion(model(history), future)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            batches, total = batches + 1, total + loss.item()
        print(f"epoch {epoch}: {batches} batches, loss {total / batches:.4f}")


if __name__ == "__main__":
    main()
