"""A small diffusion model of points on two rings."""

import argparse
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Denoiser(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(4, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2)
        )

    def forward(self, x, time):
        angle = time[:, None] * math.pi / 2
        return self.layers(torch.cat([x, angle.sin(), angle.cos()], dim=1))


class Diffusion:
    def __init__(self, model, timesteps):
        self.model, self.timesteps = model, timesteps
        self.betas = torch.linspace(1e-4, 0.05, timesteps)
        self.alphas_cumprod = torch.cumprod(1 - self.betas, dim=0)

    def loss(self, x):
        t = torch.randint(0, self.timesteps, (len(x),))
        kept = self.alphas_cumprod[t][:, None]
        noise = torch.randn_like(x)
        predicted = self.model(kept.sqrt() * x + (1 - kept).sqrt() * noise, t / self.timesteps)
        return (predicted - noise).square().mean()

    @torch.no_grad()
    def sample(self, count):
        x = torch.randn(count, 2)
        for t in reversed(range(self.timesteps)):
            predicted = self.model(x, torch.full((count,), t / self.timesteps))
            beta, kept = self.betas[t], self.alphas_cumprod[t]
            x = (x - beta / (1 - kept).sqrt() * predicted) / (1 - beta).sqrt()
            if t > 0:
                x = x + beta.sqrt() * torch.randn_like(x)
        return x


def rings(count):
    radius = torch.where(torch.rand(count) < 0.5, 0.6, 1.4)
    angle = 2 * math.pi * torch.rand(count)
    return TensorDataset(torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--timesteps", type=int, default=60)
    args = parser.parse_args()

    torch.manual_seed(29)
    loader = DataLoader(rings(1024), batch_size=64, shuffle=True)
    model = Denoiser()
    diffusion = Diffusion(model, args.timesteps)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(args.epochs):
        total = 0.0
        for (x,) in loader:
            loss = diffusion.loss(x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.4f}")
    model.eval()
    print(f"mean radius {diffusion.sample(256).norm(dim=1).mean():.3f}")


main()
