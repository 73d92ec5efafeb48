# A gradient penalty: create_graph and a second backward pass.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)
for _ in range(6):
    x = torch.randn(8, 4, requires_grad=True)
    out = model(x)
    (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    optimizer.zero_grad()
    (out.mean() + (slope.norm(dim=1) - 1).pow(2).mean()).backward()
    optimizer.step()
told(model, optimizer)
