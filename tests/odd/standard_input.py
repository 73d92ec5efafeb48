# stdin: 0.1 0.2 0.3
# real
# Settings come from standard input, during the training.
import sys

import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
for rate in sys.stdin.read().split():
    optimizer = torch.optim.SGD(model.parameters(), lr=float(rate))
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
told(model)
