# The optimizer steps in hooks of the backward pass, one per parameter.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
optimizers = {parameter: torch.optim.SGD([parameter], lr=0.1) for parameter in model.parameters()}


def hook(parameter):
    optimizers[parameter].step()
    optimizers[parameter].zero_grad()


for parameter in model.parameters():
    parameter.register_post_accumulate_grad_hook(hook)
for _ in range(6):
    model(torch.randn(8, 4)).pow(2).mean().backward()
told(model)
