# Ensembles by vmap over stacked parameters.
import torch
from told import told
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

torch.manual_seed(0)
models = [nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1)) for _ in range(3)]
parameters, buffers = stack_module_state(models)
optimizer = torch.optim.SGD(parameters.values(), lr=0.1)


def one(parameters, buffers, x):
    return functional_call(models[0], (parameters, buffers), (x,)).exp().log()


for _ in range(6):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    vmap(one, in_dims=(0, 0, None))(parameters, buffers, x).pow(2).mean().backward()
    optimizer.step()
told(parameters)
