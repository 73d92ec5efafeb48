# Modules whose __call__ is their own, forward that is assigned, and a module that is a function's default.
import types

import torch
from told import told
from torch import nn

torch.manual_seed(0)


class Net(nn.Linear):
    def __call__(self, x, **options):
        return super().__call__(x, **options) * 2


def forward(self, x, *, scale=1.0):
    return nn.functional.linear(x, self.weight, self.bias) * scale


model = Net(4, 1)
model.forward = types.MethodType(forward, model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 4), scale=0.5).pow(2).mean().backward()
    optimizer.step()
told(model, sorted(vars(model)))
