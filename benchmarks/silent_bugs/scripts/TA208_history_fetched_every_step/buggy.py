"""Fits a small implicit picture and keeps the curve of the loss."""

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Field(nn.Module):
    def __init__(self, frequencies=6, hidden=64):
        super().__init__()
        self.register_buffer("bands", 2.0 ** torch.arange(frequencies))
        self.first = nn.Linear(4 * frequencies, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.last = nn.Linear(hidden, 1)

    def forward(self, points):
        angles = (points[..., None] * self.bands).flatten(1)
        h = torch.cat([angles.sin(), angles.cos()], dim=1)
        h = torch.relu(self.first(h))
        h = torch.relu(self.second(h))
        return self.last(h)


def picture(points):
    return torch.sin(9 * points[:, :1]) * torch.cos(7 * points[:, 1:]) + points.prod(1, keepdim=True)


def train_epoch(field, optimizer, steps):
    curve = []
    for _ in range(steps):
        points = torch.rand(256, 2, device=device)
        loss = (field(points) - picture(points)).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        curve.append(loss.detach().cpu())  # bug: TA208
    return torch.stack(curve)


def main():
    torch.manual_seed(32)
    field = Field().to(device)
    optimizer = torch.optim.Adam(field.parameters(), lr=2e-3)
    for epoch in range(4):
        curve = train_epoch(field, optimizer, steps=50)
        print(f"epoch {epoch}: {curve.mean():.4f} at the end {curve[-5:].mean():.4f}")


if __name__ == "__main__":
    main()
