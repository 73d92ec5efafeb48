"""Logs the mean loss of each epoch."""

import torch
from torch import nn


def run_epoch(model, optimizer, batches):
    total = 0.0
    for x, y in batches:
        loss = nn.functional.smooth_l1_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()  # bug: TA206 (runtime)
        optimizer.step()
        total += loss  # bug: TA206 (static)
    return total / len(batches)


def main():
    torch.manual_seed(0)
    batches = [(torch.randn(32, 8), torch.randn(32, 1)) for _ in range(20)]
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(3):
        print(epoch, float(run_epoch(model, optimizer, batches)))


if __name__ == "__main__":
    main()
