import copy
import math

import torch
from torch import nn
from torch.nn import functional as F


def zero_module(module):
    for p in module.parameters():
        p.detach().zero_()
    return module


def timestep_embedding(timesteps, dim):
    half = dim // 2
    freqs = torch.exp(-math.log(10000) * torch.arange(half) / half)
    args = timesteps[:, None].float() * freqs[None]
    return torch.cat([torch.cos(args), torch.sin(args)], dim=-1)


class ResBlock(nn.Module):
    def __init__(self, channels, emb_channels, out_channels):
        super().__init__()
        self.in_layers = nn.Sequential(
            nn.GroupNorm(4, channels), nn.SiLU(), nn.Conv2d(channels, out_channels, 3, padding=1)
        )
        self.emb_layers = nn.Sequential(nn.SiLU(), nn.Linear(emb_channels, out_channels))
        self.out_layers = nn.Sequential(
            nn.GroupNorm(4, out_channels),
            nn.SiLU(),
            nn.Dropout(0.1),
            zero_module(nn.Conv2d(out_channels, out_channels, 3, padding=1)),
        )
        self.skip = nn.Identity() if channels == out_channels else nn.Conv2d(channels, out_channels, 1)

    def forward(self, x, emb):
        h = self.in_layers(x) + self.emb_layers(emb)[:, :, None, None]
        return self.skip(x) + self.out_layers(h)


class UNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.width = width
        self.time_embed = nn.Sequential(nn.Linear(width, 64), nn.SiLU(), nn.Linear(64, 64))
        self.input = nn.Conv2d(3, width, 3, padding=1)
        self.down1 = ResBlock(width, 64, width)
        self.downsample = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.down2 = ResBlock(width, 64, 2 * width)
        self.middle = ResBlock(2 * width, 64, 2 * width)
        self.up2 = ResBlock(4 * width, 64, width)
        self.up1 = ResBlock(2 * width, 64, width)
        self.out = nn.Sequential(
            nn.GroupNorm(4, width), nn.SiLU(), zero_module(nn.Conv2d(width, 3, 3, padding=1))
        )

    def forward(self, x, timesteps):
        emb = self.time_embed(timestep_embedding(timesteps, self.width))
        h1 = self.down1(self.input(x), emb)
        h2 = self.down2(self.downsample(h1), emb)
        h = self.middle(h2, emb)
        h = self.up2(torch.cat([h, h2], 1), emb)
        h = F.interpolate(h, scale_factor=2, mode="nearest")
        return self.out(self.up1(torch.cat([h, h1], 1), emb))


torch.manual_seed(0)
betas = torch.linspace(1e-4, 0.02, 1000)
alphas_cumprod = torch.cumprod(1 - betas, 0)
model = UNet()
ema = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.0)
for _step in range(60):
    x = (torch.randn(8, 3, 1, 1) + 0.1 * torch.randn(8, 3, 16, 16)).clamp(-1, 1)
    t = torch.randint(0, 1000, (8,))
    noise = torch.randn_like(x)
    a = alphas_cumprod[t].view(-1, 1, 1, 1)
    loss = F.mse_loss(model(a.sqrt() * x + (1 - a).sqrt() * noise, t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for source, target in zip(model.parameters(), ema.parameters(), strict=False):
            target.mul_(0.99).add_(source, alpha=0.01)
