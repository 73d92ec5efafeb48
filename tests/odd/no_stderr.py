# sys.stderr is None, as under pythonw.
import sys

import torch
from told import told
from torch import nn

torch.manual_seed(0)
sys.stderr = None
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
told(model)
