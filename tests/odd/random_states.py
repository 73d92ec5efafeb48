# Random states are saved, restored and forked; Python's and NumPy's too.
import random

import numpy
import torch
from told import told
from torch import nn

random.seed(1)
numpy.random.seed(2)
torch.manual_seed(3)
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    x = torch.randn(8, 4) * random.random() + float(numpy.random.rand())
    if step == 2:
        states = torch.get_rng_state(), random.getstate(), numpy.random.get_state()
    if step == 5:
        torch.set_rng_state(states[0])
        random.setstate(states[1])
        numpy.random.set_state(states[2])
    with torch.random.fork_rng():
        torch.manual_seed(step)
        noise = torch.rand(8, 1)
    optimizer.zero_grad()
    (model(x) * noise).pow(2).mean().backward()
    optimizer.step()
told(model, torch.rand(2), random.random(), numpy.random.rand(), torch.initial_seed())
