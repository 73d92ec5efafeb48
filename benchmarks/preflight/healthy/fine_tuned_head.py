"""A body that learnt already, with a new head; the optimizer holds the head."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
body = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
for parameter in body.parameters():
    parameter.requires_grad = False
model = nn.Sequential(body, nn.Linear(32, 7))
loader = DataLoader(
    TensorDataset(torch.randn(160, 12), torch.randint(0, 7, (160,))), batch_size=32, shuffle=True
)
optimizer = torch.optim.Adam(model[1].parameters(), lr=1e-3)
for x, y in loader:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
