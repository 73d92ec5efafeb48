# MAML: torch.func.grad inside a training with an optimizer outside.
import torch
from told import told
from torch import nn
from torch.func import functional_call, grad

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def loss(parameters, x):
    return nn.functional.mse_loss(functional_call(model, parameters, (x,)), x.mean(1, keepdim=True))


for _ in range(6):
    parameters = dict(model.named_parameters())
    inner = grad(loss)(parameters, torch.randn(8, 4))
    adapted = {name: value - 0.1 * inner[name] for name, value in parameters.items()}
    optimizer.zero_grad()
    loss(adapted, torch.randn(8, 4)).backward()
    optimizer.step()
told(model, optimizer)
