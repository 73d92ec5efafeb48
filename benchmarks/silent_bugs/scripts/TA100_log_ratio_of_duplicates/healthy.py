"""Metric learning on catalogue items: distances in the embedding follow distances in price."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Encoder(nn.Module):
    def __init__(self, width=16, out=8):
        super().__init__()
        self.hidden = nn.Linear(width, 48)
        self.act = nn.SiLU()
        self.project = nn.Linear(48, out)

    def forward(self, x):
        return self.project(self.act(self.hidden(x)))


def log_ratio_loss(z, price):
    i, j = torch.triu_indices(len(z), len(z), offset=1)
    distance = (z[i] - z[j]).pow(2).sum(-1)
    gap = (price[i] - price[j]).abs() + 1e-2
    log_distance = torch.log(torch.where(distance > 0, distance, torch.ones_like(distance)))
    difference = (log_distance - 2 * gap.log())[distance > 0]
    return difference.pow(2).mean()


def make_catalogue(n=1440):
    items = torch.randn(n, 16)
    items[-100:] = items[:100]  # listed by two sellers
    price = items[:, :4].sum(1) + 0.1 * torch.randn(n)
    return TensorDataset(items, price)


def main():
    torch.manual_seed(3)
    loader = DataLoader(make_catalogue(), batch_size=24, shuffle=True)
    encoder = Encoder()
    optimizer = torch.optim.Adam(encoder.parameters(), lr=2e-3)
    for epoch in range(2):
        total = 0.0
        for items, price in loader:
            optimizer.zero_grad()
            loss = log_ratio_loss(encoder(items), price)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
