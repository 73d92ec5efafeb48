# The script breaks builtins.open for a while, and leaves it broken.
import builtins

import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def refuse(*args, **options):
    raise OSError("no files any more")


for step in range(6):
    optimizer.zero_grad()
    model(torch.randn(4, 4)).sum().backward()
    optimizer.step()
    if step == 2:
        builtins.open = refuse
told(model)
