"""Fits with regularisation."""

import torch
from torch import nn


def fit(model, x, y, decay):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=0.01)  # bug: TA401

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    for _ in range(30):
        loss = optimizer.step(closure)
    return loss.item()


def main():
    torch.manual_seed(0)
    x = torch.randn(128, 5)
    model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
    print(fit(model, x, x.prod(dim=1, keepdim=True), 0.01))


if __name__ == "__main__":
    main()
