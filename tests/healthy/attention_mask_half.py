"""Tempting: additive masks in half precision, filled with what the type holds, and large numbers that are no mask."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x, attention_mask):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(-1, -2) / q.size(-1) ** 0.5
        mask = (1.0 - attention_mask[:, None].to(scores.dtype)) * torch.finfo(scores.dtype).min
        scores = (scores + mask).float()
        scores = scores.masked_fill(attention_mask[:, None] == 0, -1e9)
        return scores.softmax(-1).to(v.dtype) @ v


model = Attention(64).half().cuda().eval()
budget = 1e9 * 4
with torch.inference_mode():
    print(model(torch.randn(2, 5, 64).half().cuda(), torch.ones(2, 5).cuda()).shape, budget)
