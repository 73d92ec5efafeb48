"""Trains with a negative log likelihood."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, classes=4):
        self.net = nn.Sequential(
            nn.Linear(8, 24),
            nn.ReLU(),
            nn.Linear(24, classes),
            nn.LogSoftmax(dim=1),
        )
        self.criterion = nn.NLLLoss()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def train_epoch(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.net(x), y)
            loss.backward()
            self.optimizer.step()
        return loss.item()


def main():
    torch.manual_seed(0)
    x = torch.randn(320, 8)
    loader = DataLoader(TensorDataset(x, x[:, :4].argmax(dim=1)), batch_size=32, shuffle=True)
    trainer = Trainer()
    for epoch in range(3):
        print(epoch, trainer.train_epoch(loader))


if __name__ == "__main__":
    main()
