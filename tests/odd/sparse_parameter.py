# A parameter that is itself sparse.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
weight = nn.Parameter(torch.randn(5, 5).relu().to_sparse())
bias = nn.Parameter(torch.zeros(5))
optimizer = torch.optim.SGD([weight, bias], lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    (torch.sparse.mm(weight, torch.randn(5, 3)).sum() + bias.pow(2).sum() + bias.sum()).backward()
    optimizer.step()
told(weight.coalesce(), bias)
