"""A deep denoiser of residual layers over vectors."""

import copy

import torch
from torch import nn


class ResidualLayer(nn.Module):
    def __init__(self, width, expand=2):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, expand * width)
        self.down = nn.Linear(expand * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.mish(self.up(self.norm(x))))


def stack(layer, depth):
    return nn.Sequential(*[copy.deepcopy(layer) for _ in range(depth)])


class Denoiser(nn.Module):
    def __init__(self, inputs, width, depth):
        super().__init__()
        self.enter = nn.Linear(inputs + 1, width)
        self.trunk = stack(ResidualLayer(width), depth)
        self.leave = nn.Linear(width, inputs)

    def forward(self, noisy, level):
        return self.leave(self.trunk(self.enter(torch.cat([noisy, level], dim=1))))


def clean(count):
    angle = 6.2832 * torch.rand(count, 1)
    return torch.cat([angle.cos(), angle.sin(), (2 * angle).sin()], dim=1)


def main(steps=180):
    torch.manual_seed(55)
    model = Denoiser(3, 24, depth=4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=steps)
    window = []
    for step in range(steps):
        x = clean(64)
        level = torch.rand(64, 1)
        noise = torch.randn_like(x)
        predicted = model((1 - level) * x + level * noise, level)
        loss = (predicted - noise).square().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        window.append(loss.item())
        if len(window) == 45:
            print(f"step {step + 1}: {sum(window) / len(window):.4f}")
            window.clear()


main()
