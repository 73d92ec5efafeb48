# No modules at all: tensors, autograd.grad, and an optimizer over tensors.
import torch
from told import told

torch.manual_seed(0)
weight, bias = torch.randn(4, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
optimizer = torch.optim.Adam([{"params": [weight], "lr": 0.1}, {"params": [bias], "lr": 0.01}])
for step in range(8):
    loss = (torch.randn(8, 4) @ weight + bias).pow(2).mean()
    weight.grad, bias.grad = torch.autograd.grad(loss, (weight, bias))
    optimizer.step()
told(weight, bias, optimizer)
