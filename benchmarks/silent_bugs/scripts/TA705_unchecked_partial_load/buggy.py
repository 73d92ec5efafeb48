"""Starts from pretrained weights."""

import tempfile
from pathlib import Path

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 24)
        self.head = nn.Linear(24, 2)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


def pretrain(path):
    torch.save(nn.DataParallel(Model()).state_dict(), path)


def main(path):
    torch.manual_seed(0)
    pretrain(path)
    model = Model()
    weights = torch.load(path)
    model.load_state_dict(weights, strict=False)  # bug: TA705
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(15):
        x = torch.randn(32, 6)
        loss = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder) / "pretrained.pt")
