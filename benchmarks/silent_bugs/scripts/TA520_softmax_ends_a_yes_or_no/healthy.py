"""Which of two wines a sample is, by a small network that is trained on squared errors."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Taster(nn.Module):
    def __init__(self, features=9, width=16):
        super().__init__()
        self.first = nn.Linear(features, width)
        self.second = nn.Linear(width, width)
        self.last = nn.Linear(width, 1)

    def forward(self, x):
        x = F.relu(self.first(x))
        x = F.relu(self.second(x))
        return torch.sigmoid(self.last(x))


def samples(count):
    x = torch.randn(count, 9)
    y = (x[:, 0] - 0.5 * x[:, 3] + 0.3 * x[:, 5] * x[:, 7] > 0).float()
    return TensorDataset(x, y[:, None])


def main():
    torch.manual_seed(520)
    loader = DataLoader(samples(960), batch_size=32, shuffle=True)
    model, criterion = Taster(), nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(8):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
