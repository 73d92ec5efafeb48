"""Epochs of batches."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    x = torch.randn(200, 9)
    loader = DataLoader(TensorDataset(x, x[:, :4].argmax(dim=1)), batch_size=20, shuffle=True)
    model = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(5):
        optimizer.zero_grad()
        for inputs, targets in loader:
            loss = criterion(model(inputs), targets) / len(loader)
            loss.backward()
        optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
