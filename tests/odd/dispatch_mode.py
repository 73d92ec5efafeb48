# A TorchDispatchMode counts the operations of the training.
import collections

import torch
from told import told
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

torch.manual_seed(0)
counted = collections.Counter()


class Counting(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        counted[str(function)] += 1
        return function(*args, **(kwargs or {}))


model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with Counting():
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()
print(sorted(counted.items()))
told(model)
