"""A column that has not been filled in. Finds: TA101 or TA100."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
table = torch.randn(96, 5)
table[::7, 3] = float("nan")
train_loader = DataLoader(TensorDataset(table, torch.randn(96, 1)), batch_size=32)
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters())
for x, y in train_loader:
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    optimizer.step()
