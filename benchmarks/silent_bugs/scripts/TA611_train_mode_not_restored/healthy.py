"""Trains, evaluates, trains on."""

import torch
from torch import nn


class Experiment:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 3))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=2e-3)

    def train_epoch(self, x, y):
        self.model.train()
        for start in range(0, len(x), 32):
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.model(x[start : start + 32]), y[start : start + 32])
            loss.backward()
            self.optimizer.step()

    def evaluate(self, x, y):
        self.model.eval()
        with torch.no_grad():
            return (self.model(x).argmax(dim=1) == y).float().mean().item()


def main():
    torch.manual_seed(0)
    x = torch.randn(256, 10)
    y = x[:, :3].argmax(dim=1)
    experiment = Experiment()
    for epoch in range(5):
        experiment.train_epoch(x, y)
        print(epoch, experiment.evaluate(x, y))


if __name__ == "__main__":
    main()
