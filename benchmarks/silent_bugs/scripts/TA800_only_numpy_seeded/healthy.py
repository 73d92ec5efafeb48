"""Forecasts a noisy series; data by NumPy, model by torch."""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def windows(length=900, size=8):
    time = np.arange(length)
    series = np.sin(0.21 * time) + 0.5 * np.sin(0.053 * time) + 0.1 * np.random.normal(size=length)
    frames = np.lib.stride_tricks.sliding_window_view(series.astype("float32"), size + 1)
    frames = torch.from_numpy(frames.copy())
    return TensorDataset(frames[:, :-1], frames[:, -1:])


class Forecast(nn.Module):
    def __init__(self, size, width=16):
        super().__init__()
        self.linear = nn.Linear(size, 1)
        self.correction = nn.Sequential(nn.Linear(size, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x):
        return self.linear(x) + self.correction(x)


def one_epoch(model, loader, optimizer):
    total = 0.0
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def main():
    seed_everything(42)
    model = Forecast(8)
    loader = DataLoader(windows(), batch_size=32, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    epoch, best = 0, float("inf")
    while epoch < 5:
        loss = one_epoch(model, loader, optimizer)
        scheduler.step(loss)
        best = min(best, loss)
        print(f"epoch {epoch}: {loss:.4f} best {best:.4f}")
        epoch += 1


main()
