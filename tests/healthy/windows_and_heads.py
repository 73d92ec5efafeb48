"""Tempting: views that split, join and reorder dimensions the right way, kernels of even size that downsample."""

import math

import torch
from torch import nn


class Windows(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.patches = nn.Conv2d(3, width, kernel_size=16, stride=16)
        self.down = nn.Conv2d(width, width, 4, 2, 1)
        self.same = nn.Conv2d(width, width, 2, padding="same")
        self.up = nn.ConvTranspose2d(width, width, 4, 2, 1)
        self.causal = nn.Conv1d(width, width, 2, padding=1)
        self.gamma = nn.Parameter(1e-6 * torch.ones(width))

    def partition(self, x, size):
        B, H, W, C = x.shape
        x = x.view(B, H // size, size, W // size, size, C)
        windows = x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, size, size, C)
        x = windows.view(B, H // size, W // size, size, size, -1)
        return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(B, H, W, -1).view(B, H * W, C)

    def heads(self, x):
        b, n, d = x.shape
        q = x.view(b, n, 4, d // 4).transpose(1, 2)
        x = x.transpose(1, 2)
        return q, x.reshape(b, d, n)

    def forward(self, x):
        x = self.up(self.same(self.down(self.patches(x))))
        b, c, h, w = x.size()
        gate = x.mean((2, 3)).sigmoid().view(b, c, 1, 1)
        tokens = x.view(b, c, h * w).permute(0, 2, 1)
        side = int(math.sqrt(tokens.size(1)))
        image = tokens.reshape(b, side, side, c)
        past = self.causal(x.flatten(2))[..., :-1]
        return x * gate.expand_as(x), image * self.gamma, past
