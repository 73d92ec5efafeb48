# sys.exit with a number, inside a function, in a with.
import sys

import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train():
    for step in range(9):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()
        if step == 5:
            told(model)
            sys.exit(42)


with torch.enable_grad():
    train()
