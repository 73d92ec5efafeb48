"""Every input is the mean that the normalisation takes away. Finds: TA302."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(128, 12)
inputs = inputs - inputs  # was meant to be `- inputs.mean(0)`
train_loader = DataLoader(TensorDataset(inputs, torch.randint(0, 4, (128,))), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters())
for x, y in train_loader:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
