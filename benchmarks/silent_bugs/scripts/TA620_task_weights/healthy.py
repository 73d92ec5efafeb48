"""Uncertainty weighting of two tasks with very different scales."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class TwoTasks(nn.Module):
    def __init__(self, features, width=32):
        super().__init__()
        self.shared = nn.Linear(features, width)
        self.price, self.sold = nn.Linear(width, 1), nn.Linear(width, 1)

    def forward(self, x):
        hidden = F.selu(self.shared(x))
        return self.price(hidden)[:, 0], self.sold(hidden)[:, 0]


class UncertaintyWeights(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.log_variance = nn.Parameter(torch.zeros(tasks))

    def forward(self, losses):
        return (torch.exp(-self.log_variance) * losses + self.log_variance).sum()


def houses(count):
    x = torch.randn(count, 6)
    price = 3 * x[:, 0] + 2 * x[:, 1].abs() + torch.randn(count)
    sold = (x[:, 2] + 0.5 * torch.randn(count) > 0).float()
    return TensorDataset(x, price, sold)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--weight-lr", type=float, default=2e-2)
    args = parser.parse_args()

    torch.manual_seed(208)
    loader = DataLoader(houses(1024), batch_size=64, shuffle=True)
    network, weighting = TwoTasks(6), UncertaintyWeights(2)
    optimizer = torch.optim.Adam(network.parameters(), lr=args.lr)
    weight_optimizer = torch.optim.SGD(weighting.parameters(), lr=args.weight_lr)
    for epoch in range(args.epochs):
        total = 0.0
        for x, price, sold in loader:
            predicted_price, predicted_sold = network(x)
            losses = torch.stack(
                [
                    F.mse_loss(predicted_price, price),
                    F.binary_cross_entropy_with_logits(predicted_sold, sold),
                ]
            )
            loss = weighting(losses)
            network.zero_grad()
            weighting.zero_grad()
            loss.backward()
            optimizer.step()
            weight_optimizer.step()
            total += losses.sum().item()
        variance = [round(v, 3) for v in weighting.log_variance.exp().tolist()]
        print(f"epoch {epoch}: {total / len(loader):.4f}, variances {variance}")


main()
