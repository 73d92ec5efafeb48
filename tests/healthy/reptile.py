"""Tempting: weights kept by reference to a copy, restored by arithmetic, an inner optimizer made for each task."""

import copy

import torch
from torch import nn

model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
for iteration in range(100):
    before = copy.deepcopy(model.state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    phase = torch.rand(1) * 3.14
    for _ in range(8):
        x = torch.rand(10, 1)
        loss = (model(x) - torch.sin(x + phase)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    after = model.state_dict()
    rate = 0.1 * (1 - iteration / 100)
    model.load_state_dict({name: before[name] + (after[name] - before[name]) * rate for name in before})
