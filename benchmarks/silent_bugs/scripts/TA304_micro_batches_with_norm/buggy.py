"""Trains a wide table model on a small device: micro-batches, one step for eight of them."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

MICRO, ACCUMULATE, EPOCHS = 4, 8, 5


class TableNet(nn.Module):
    def __init__(self, columns, width):
        super().__init__()
        self.fc1 = nn.Linear(columns, width, bias=False)
        self.norm1 = nn.BatchNorm1d(width)
        self.fc2 = nn.Linear(width, width, bias=False)
        self.norm2 = nn.BatchNorm1d(width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        x = nn.functional.silu(self.norm1(self.fc1(x)))
        x = nn.functional.silu(self.norm2(self.fc2(x)))
        return self.out(x)


def table(rows):
    x = torch.randn(rows, 10)
    y = torch.sin(x[:, :1]) + x[:, 1:2] * x[:, 2:3]
    return TensorDataset(x, y)


def validate(model, loader):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += nn.functional.mse_loss(model(x), y, reduction="sum").item()
    return total / len(loader.dataset)


def main():
    torch.manual_seed(39)
    train_loader = DataLoader(table(640), batch_size=MICRO, shuffle=True)
    valid_loader = DataLoader(table(200), batch_size=100)
    model = TableNet(10, 48)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(EPOCHS):
        model.train()
        optimizer.zero_grad()
        for i, (x, y) in enumerate(train_loader, 1):
            loss = nn.functional.mse_loss(model(x), y) / ACCUMULATE  # bug: TA304
            loss.backward()
            if i % ACCUMULATE == 0:
                optimizer.step()
                optimizer.zero_grad()
        print(f"epoch {epoch} validation {validate(model, valid_loader):.4f}")


if __name__ == "__main__":
    main()
