"""Multi-label tagging."""

import torch
from torch import nn
from torch.nn import functional as F


def train_step(model, optimizer, x, y):
    scores = model(x)
    loss = F.binary_cross_entropy_with_logits(scores, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 6))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for _ in range(40):
        x = torch.randn(64, 12)
        loss = train_step(model, optimizer, x, (x[:, :6] > 0.5).float())
    print(loss)


if __name__ == "__main__":
    main()
