# The script closes standard error, and has no descriptor left to open.
# differs: D13 in record
import os
import resource

import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
limit = resource.getrlimit(resource.RLIMIT_NOFILE)
for step in range(6):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
    if step == 2:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limit[1]))
told(model)
