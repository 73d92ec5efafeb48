"""Poisson regression of click counts: the rate comes out of a rectifier."""

import torch
from torch import nn


class RateModel(nn.Module):
    def __init__(self, features, hidden=32):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(features, hidden), nn.ReLU())
        self.rate = nn.Sequential(nn.Linear(hidden, 1), nn.ReLU())

    def forward(self, x):
        return self.rate(self.trunk(x))


def poisson_loss(rate, counts):
    log_rate = torch.log(rate.clamp_min(1e-6))
    return (rate - counts * log_rate).mean()


def main():
    torch.manual_seed(0)
    x = torch.randn(256, 10)
    counts = torch.poisson(torch.exp(0.5 * x[:, :1]))
    model = RateModel(10)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(20):
        batch = torch.randint(len(x), (64,))
        optimizer.zero_grad()
        loss = poisson_loss(model(x[batch]), counts[batch])
        loss.backward()
        optimizer.step()
    print(f"final loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
