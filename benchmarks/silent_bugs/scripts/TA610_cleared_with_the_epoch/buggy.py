"""Ordinal regression with accumulated gradients."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Ordinal(nn.Module):
    """One score and learned thresholds between the grades."""

    def __init__(self, features, grades):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(features, 16), nn.Softplus(), nn.Linear(16, 1))
        self.thresholds = nn.Parameter(torch.linspace(-1, 1, grades - 1))

    def forward(self, x):
        return self.score(x) - self.thresholds


def grades(count):
    x = torch.randn(count, 7)
    value = x[:, 0] + 0.5 * x[:, 1] + 0.3 * torch.randn(count)
    grade = torch.bucketize(value, torch.tensor([-1.0, 0.0, 1.0]))
    return TensorDataset(x, (grade[:, None] > torch.arange(3)).float())


def train_epoch(model, loader, optimizer, every):
    optimizer.zero_grad()
    pending, total = 0, 0.0
    for x, above in loader:
        loss = F.binary_cross_entropy_with_logits(model(x), above)
        (loss / every).backward()
        total += loss.item()
        pending += 1
        if pending == every:  # bug: TA610 (static)
            optimizer.step()  # bug: TA610 (runtime)
            optimizer.zero_grad()
            pending = 0
    return total / len(loader)


def main(epochs=12):
    torch.manual_seed(130)
    loader = DataLoader(grades(544), batch_size=32, shuffle=True)
    model = Ordinal(7, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(epochs):
        print(f"epoch {epoch}: {train_epoch(model, loader, optimizer, every=3):.4f}")


if __name__ == "__main__":
    main()
