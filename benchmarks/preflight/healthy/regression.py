"""A linear regression on noisy targets, by plain gradient descent."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(256, 8)
y = x @ torch.randn(8, 1) + 0.3 * torch.randn(256, 1)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for inputs, target in loader:
    optimizer.zero_grad()
    F.mse_loss(model(inputs), target).backward()
    optimizer.step()
