# A function at exit saves a checkpoint with torch, and trains a last step.
import atexit

import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step():
    optimizer.zero_grad()
    model(torch.randn(8, 4)).exp().mean().backward()
    optimizer.step()


def last():
    step()
    torch.save(model.state_dict(), "last.pt")
    told(torch.load("last.pt"))


atexit.register(last)
for _ in range(5):
    step()
