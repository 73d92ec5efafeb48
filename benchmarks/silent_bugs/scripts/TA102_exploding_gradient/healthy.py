"""Regression on sensor readings."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def load_readings():
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(1024, 6, generator=generator)
    y = x @ torch.tensor([[1.0], [-2.0], [0.5], [0.0], [1.5], [0.3]]) + 0.1 * torch.randn(
        1024, 1, generator=generator
    )
    x[931] *= 2.0
    return TensorDataset(x, y)


def main():
    torch.manual_seed(3)
    loader = DataLoader(load_readings(), batch_size=16)
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
