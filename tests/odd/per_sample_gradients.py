# Gradients of each sample by vmap over grad, clipped and averaged by hand.
import torch
from told import told
from torch import nn
from torch.func import functional_call, grad, hessian, jacrev, vmap

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def loss(parameters, x):
    return functional_call(model, parameters, (x[None],)).pow(2).sum()


for _ in range(5):
    parameters = {name: value.detach() for name, value in model.named_parameters()}
    each = vmap(grad(loss), in_dims=(None, 0))(parameters, torch.randn(8, 4))
    optimizer.zero_grad()
    for name, parameter in model.named_parameters():
        parameter.grad = each[name].clamp(-1, 1).mean(0)
    optimizer.step()
told(model, jacrev(lambda x: torch.exp(x))(torch.ones(2)), hessian(lambda x: x.pow(3).sum())(torch.ones(2)))
