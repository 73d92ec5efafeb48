"""Autocast with a scaler, and an average of the weights that is evaluated in their place."""

import copy
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@torch.no_grad()
def update(average, model, decay=0.9):
    for mean, parameter in zip(average.parameters(), model.parameters(), strict=True):
        mean.lerp_(parameter, 1 - decay)


def main(seed=0, batch_size=16):
    torch.manual_seed(seed)
    x = torch.randn(180, 12)
    y = x[:, :4].argmax(dim=1)
    loader = DataLoader(TensorDataset(x[:140], y[:140]), batch_size=batch_size, shuffle=True, drop_last=True)
    model = nn.Sequential(nn.Linear(12, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 4))
    average = copy.deepcopy(model).requires_grad_(False).eval()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)
    for epoch in range(3):
        model.train()
        for inputs, targets in loader:
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                loss = nn.functional.cross_entropy(model(inputs), targets)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            update(average, model)
        scheduler.step()
        model.eval()
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            print(epoch, nn.functional.cross_entropy(average(x[140:]), y[140:]).item())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
