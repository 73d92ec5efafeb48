"""Tempting: `use_reentrant`, inputs that are made to require gradients, layers run in segments, in-place residuals."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Net(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.tail = nn.Sequential(*[Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, 3)
        self.gradient_checkpointing = True

    def forward(self, x):
        for block in self.blocks:
            if self.gradient_checkpointing and self.training:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        x = checkpoint_sequential(self.tail, 2, x, use_reentrant=False)
        return self.head(x)


net = Net(32, 4)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
for _ in range(10):
    x = torch.randn(8, 32).requires_grad_(True)
    loss = nn.functional.cross_entropy(net(x), torch.randint(0, 3, (8,)))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
