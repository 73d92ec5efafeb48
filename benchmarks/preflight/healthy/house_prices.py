"""A regression whose targets are large and not scaled."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(192, 6)
y = 200_000 + 50_000 * x.sum(1, keepdim=True)
loader = DataLoader(TensorDataset(x, (y - y.mean()) / y.std()), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(6, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters())
for inputs, target in loader:
    optimizer.zero_grad()
    F.huber_loss(model(inputs), target).backward()
    optimizer.step()
