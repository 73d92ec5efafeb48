# sys.setprofile names the Python functions that ran: ours are not the script's.
import sys

import torch
from told import told
from torch import nn

torch.manual_seed(0)
names = set()
own = []


def profiler(frame, event, argument):
    names.add(frame.f_code.co_filename)
    if frame.f_code.co_filename == __file__:
        own.append((event, frame.f_lineno, getattr(argument, "__name__", None)))


model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
sys.setprofile(profiler)
for _ in range(4):
    optimizer.zero_grad()
    (torch.exp(model(torch.randn(8, 4))) * 2).pow(2).mean().backward()
    optimizer.step()
sys.setprofile(None)
print(sorted(name.rpartition("/")[2] for name in names if "ta_runtime" in name))
print(own, sys.getprofile())
told(model)
