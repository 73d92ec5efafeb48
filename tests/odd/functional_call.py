# Updates without an optimizer: a pure function of the parameters.
import torch
from told import told
from torch import nn
from torch.func import functional_call, grad

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 1))
parameters = dict(model.named_parameters())


def loss(parameters, x):
    return functional_call(model, parameters, (x,)).pow(2).mean()


for _ in range(6):
    gradients = grad(loss)(parameters, torch.randn(8, 4))
    parameters = {
        name: (value - 0.1 * gradients[name]).detach().requires_grad_() for name, value in parameters.items()
    }
told(parameters)
