"""Tempting: second-order gradients, losses summed with their graphs over tasks, weights updated by hand."""

import torch
from torch import nn
from torch.func import functional_call

model = nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 1))
meta_optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def task():
    amplitude, phase = torch.rand(1) * 4.9 + 0.1, torch.rand(1) * 3.14
    x = torch.rand(20, 1) * 10 - 5
    return x, amplitude * torch.sin(x + phase)


for iteration in range(100):
    meta_loss = 0.0
    for _ in range(4):
        x, y = task()
        fast = dict(model.named_parameters())
        for _ in range(2):
            inner = nn.functional.mse_loss(functional_call(model, fast, (x[:10],)), y[:10])
            grads = torch.autograd.grad(inner, fast.values(), create_graph=True)
            fast = {name: weight - 0.01 * grad for (name, weight), grad in zip(fast.items(), grads)}
        meta_loss = meta_loss + nn.functional.mse_loss(functional_call(model, fast, (x[10:],)), y[10:])
    meta_optimizer.zero_grad()
    meta_loss.backward()
    meta_optimizer.step()
