"""Regression with its own error bars (a Gaussian with a predicted variance)."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Gaussian(nn.Module):
    def __init__(self, inputs, hidden=40, low=-2.0, high=4.0):
        super().__init__()
        self.low, self.high = low, high
        self.features = nn.Sequential(
            nn.Linear(inputs, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU()
        )
        self.mean = nn.Linear(hidden, 1)
        self.log_variance = nn.Linear(hidden, 1)
        nn.init.zeros_(self.log_variance.weight)
        nn.init.constant_(self.log_variance.bias, 0.0)

    def forward(self, x):
        h = self.features(x)
        return self.mean(h), self.log_variance(h).clamp(self.low, self.high)


def gaussian_nll(mean, log_variance, y):
    return 0.5 * (log_variance + (y - mean).square() * torch.exp(-log_variance)).mean()


def make_data(n):
    x = torch.rand(n, 3) * 2 - 1
    noise = 0.3 + x[:, :1].abs()
    return TensorDataset(x, 4 * x[:, 1:].prod(1, keepdim=True) + 2 * x[:, 1:2] + noise * torch.randn(n, 1))


@torch.inference_mode()
def validate(model, loader):
    model.eval()
    total = sum(gaussian_nll(*model(x), y).item() * len(x) for x, y in loader)
    return total / len(loader.dataset)


def main():
    torch.manual_seed(9)
    train, test = make_data(960), make_data(256)
    train_loader = DataLoader(train, batch_size=32, shuffle=True)
    test_loader = DataLoader(test, batch_size=128)
    model = Gaussian(3)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)
    for epoch in range(5):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            gaussian_nll(*model(x), y).backward()
            optimizer.step()
        schedule.step()
        print(epoch, validate(model, test_loader))


if __name__ == "__main__":
    main()
