# Activation checkpointing with dropout, reentrant and not.
import torch
from told import told
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

torch.manual_seed(0)
block = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 4))
head = nn.Linear(4, 1)
optimizer = torch.optim.SGD([*block.parameters(), *head.parameters()], lr=0.1)
for step in range(9):
    x = torch.randn(8, 4, requires_grad=True)
    hidden = (
        checkpoint_sequential(block, 2, x, use_reentrant=False)
        if step % 3 == 2
        else checkpoint(block, x, use_reentrant=step % 3 == 1)
    )
    optimizer.zero_grad()
    head(hidden).pow(2).mean().backward()
    optimizer.step()
told(block, head, torch.rand(3))
