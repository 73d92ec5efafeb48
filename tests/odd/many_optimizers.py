# Forty optimizers that take turns.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.ModuleList([nn.Linear(2, 1) for _ in range(40)])
optimizers = [torch.optim.SGD(layer.parameters(), lr=0.1) for layer in model]
for step in range(80):
    number = step % 40
    optimizers[number].zero_grad()
    model[number](torch.randn(4, 2)).pow(2).mean().backward()
    optimizers[number].step()
told(model)
