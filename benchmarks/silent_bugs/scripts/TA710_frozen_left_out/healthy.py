"""Freezes an embedding for the second half of the training, and saves at the end."""

import tempfile
from pathlib import Path

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, ids):
        return self.head(self.embedding(ids).mean(dim=1))


def train(model, steps):
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    for _ in range(steps):
        ids = torch.randint(30, (32, 5))
        loss = nn.functional.cross_entropy(model(ids), (ids[:, 0] > 14).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main(path):
    torch.manual_seed(0)
    model = Model()
    train(model, 10)
    model.embedding.requires_grad_(False)
    train(model, 10)
    weights = {name: p.detach() for name, p in model.named_parameters()}
    torch.save(weights, path)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder) / "model.pt")
