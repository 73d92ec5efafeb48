"""Gives a network a new head."""

import torch
from torch import nn


class Network(nn.Module):
    def __init__(self, classes=100):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
        self.fc = nn.Linear(32, classes)

    def forward(self, x):
        return self.fc(self.body(x))


def main():
    torch.manual_seed(0)
    model = Network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model.fc = nn.Linear(32, 3)  # bug: TA427
    for step in range(30):
        x = torch.randn(32, 8)
        y = x[:, :3].argmax(dim=1)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
