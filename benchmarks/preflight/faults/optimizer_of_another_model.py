"""The optimizer holds the parameters of the model before it was built anew. Finds: TA351."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def build():
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))


torch.manual_seed(0)
loader = DataLoader(
    TensorDataset(torch.randn(96, 6), torch.randint(0, 3, (96,))), batch_size=16, shuffle=True
)
model = build()
optimizer = torch.optim.Adam(model.parameters())
model = build()  # the best of several seeds
for x, y in loader:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
