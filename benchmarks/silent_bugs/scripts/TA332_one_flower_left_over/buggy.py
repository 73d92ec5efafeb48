"""Flowers by four measures: the loss on the held-out ones is printed after each epoch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def flowers():
    kinds = torch.arange(3).repeat_interleave(50)
    centers = torch.tensor([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [6.6, 3.0, 5.5, 2.0]])
    return TensorDataset(centers[kinds] + 0.4 * torch.randn(150, 4), kinds)


def evaluate(model, loader):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += nn.functional.cross_entropy(model(x), y).item()  # bug: TA332 (runtime)
    return total / len(loader)


def main():
    torch.manual_seed(332)
    train, held_out = random_split(flowers(), [117, 33])
    train_loader = DataLoader(train, batch_size=16, shuffle=True, drop_last=True)
    test_loader = DataLoader(held_out, batch_size=32)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(10):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        print(f"{epoch}: {evaluate(model, test_loader):.4f}")


if __name__ == "__main__":
    main()
