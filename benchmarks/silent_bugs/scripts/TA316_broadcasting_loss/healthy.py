"""Regresses a single number."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regressor(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 32), nn.ReLU())
        self.head = nn.Linear(32, 1)

    def forward(self, x):
        return self.head(self.body(x))


def main():
    torch.manual_seed(0)
    x = torch.randn(512, 7)
    y = x[:, 0] - 2 * x[:, 1]
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model = Regressor(7)
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(2):
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs).squeeze(1), targets)
            loss.backward()
            optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
