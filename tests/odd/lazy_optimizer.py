# An optimizer that is built over parameters which are not initialised yet.
import warnings

import torch
from told import told
from torch import nn

warnings.filterwarnings("ignore", message="Lazy")
torch.manual_seed(0)
model = nn.Sequential(nn.LazyConv1d(4, 3), nn.Flatten(), nn.LazyLinear(1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 2, 6)).pow(2).mean().backward()
    optimizer.step()
told(model)
