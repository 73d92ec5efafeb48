"""An adapter of low rank on a frozen layer: its second matrix begins at zero."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Adapted(nn.Module):
    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, base.in_features) * 0.1)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + x @ self.down.T @ self.up.T


torch.manual_seed(0)
loader = DataLoader(
    TensorDataset(torch.randn(128, 16), torch.randint(0, 3, (128,))), batch_size=32, shuffle=True
)
model = nn.Sequential(Adapted(nn.Linear(16, 32)), nn.ReLU(), Adapted(nn.Linear(32, 3)))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
for x, y in loader:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
