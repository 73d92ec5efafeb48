"""Decays the learning rate over the epochs."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def fit(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
        scheduler.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    x = torch.randn(160, 6)
    loader = DataLoader(TensorDataset(x, x.sin()), batch_size=16, shuffle=True)
    print(fit(nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 6)), loader, epochs=5))


if __name__ == "__main__":
    main()
