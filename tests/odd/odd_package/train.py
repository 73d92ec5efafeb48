"""A training in a package, with relative imports."""

import os
import sys

import torch
from told import told
from torch import nn

from . import settings
from .settings import RATE

print(__name__, __package__, sys.argv[1:], os.path.basename(__file__), settings.RATE)
torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
told(model)
