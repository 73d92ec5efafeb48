"""Residual branches whose last norm begins at zero, and a head that does."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        nn.init.zeros_(self.second.weight)
        nn.init.zeros_(self.second.bias)

    def forward(self, x):
        return x + self.second(F.gelu(self.first(x)))


torch.manual_seed(0)
loader = DataLoader(
    TensorDataset(torch.randn(96, 12), torch.randint(0, 5, (96,))), batch_size=32, shuffle=True
)
model = nn.Sequential(nn.Linear(12, 32), Block(32), Block(32), nn.Linear(32, 5))
nn.init.zeros_(model[-1].weight)
optimizer = torch.optim.Adam(model.parameters())
for x, y in loader:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
