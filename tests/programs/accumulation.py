"""Gradients of three micro-batches in each step, and what is left at the end of an epoch in one more."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATION = 3


def main(seed=0, batch_size=8):
    torch.manual_seed(seed)
    x = torch.randn(190, 10)
    y = x @ torch.randn(10, 1)
    loader = DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True)
    model = nn.Sequential(nn.Linear(10, 24), nn.LayerNorm(24), nn.GELU(), nn.Linear(24, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    warm_up = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=5)
    for epoch in range(6):
        total = 0.0
        optimizer.zero_grad()
        for number, (inputs, targets) in enumerate(loader, 1):
            loss = nn.functional.mse_loss(model(inputs), targets)
            (loss / ACCUMULATION).backward()
            total += loss.item()
            if number % ACCUMULATION == 0 or number == len(loader):
                nn.utils.clip_grad_norm_(model.parameters(), 5.0)
                optimizer.step()
                warm_up.step()
                optimizer.zero_grad()
        print(epoch, total / len(loader))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
