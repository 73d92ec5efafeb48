"""Resumes from a checkpoint."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import nn


def save(path, model, optimizer):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)


def resume(path, model, optimizer):
    checkpoint = torch.load(path, weights_only=False)  # bug: TA700
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])


def train(model, optimizer, steps):
    for _ in range(steps):
        x = torch.randn(32, 5)
        loss = nn.functional.mse_loss(model(x), x[:, :2])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main(folder):
    torch.manual_seed(0)
    path = Path(folder) / "last.pt"
    model = nn.Linear(5, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    train(model, optimizer, 15)
    save(path, model, optimizer)
    resume(path, model, optimizer)
    print(train(model, optimizer, 15))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        main(sys.argv[1] if len(sys.argv) > 1 else made)
