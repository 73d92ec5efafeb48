# Gradients that are differentiable: backward(create_graph=True), and a Hessian-vector product.
import warnings

import torch
from told import told
from torch import nn

warnings.filterwarnings("ignore", message="Using backward")
torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).exp().mean().backward(create_graph=True)
    bent = torch.autograd.grad(
        sum(each.grad.pow(2).sum() for each in model.parameters()), list(model.parameters())
    )
    for parameter, each in zip(model.parameters(), bent):
        parameter.grad = parameter.grad.detach() + 0.1 * each
    optimizer.step()
told(model)
