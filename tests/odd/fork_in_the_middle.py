# A child that is forked in the middle trains on, and ends by os._exit.
import os

import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()


train(5)
if (pid := os.fork()) == 0:
    train(3)
    told("child", model)
    os._exit(7)
print("child ended with", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
train(5)
told("parent", model)
