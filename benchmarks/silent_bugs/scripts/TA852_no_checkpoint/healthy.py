"""Trains a model of language on random text."""

import tempfile
from pathlib import Path

import torch
from torch import nn


def main(folder):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(40, 16), nn.Linear(16, 40))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(3):
        for _ in range(15):
            text = torch.randint(40, (8, 21))
            scores = model(text[:, :-1])
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, folder / "last.pt")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        main(Path(made))
