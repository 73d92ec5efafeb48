"""A training that goes on where it has all but learnt its data."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(128, 4)
loader = DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=32, shuffle=True)
model = nn.Linear(4, 2)
with torch.no_grad():
    model.weight.copy_(torch.tensor([[-90.0, 0, 0, 0], [90.0, 0, 0, 0]]))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for inputs, target in loader:
    optimizer.zero_grad()
    F.cross_entropy(model(inputs), target).backward()
    optimizer.step()
