"""Two views of each sample, which are told from all others of the batch."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(128, 10)), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16))
optimizer = torch.optim.Adam(model.parameters())
for (x,) in loader:
    first = F.normalize(model(x + 0.1 * torch.randn_like(x)), dim=1)
    second = F.normalize(model(x + 0.1 * torch.randn_like(x)), dim=1)
    logits = first @ second.T / 0.1
    loss = F.cross_entropy(logits, torch.arange(len(x)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
