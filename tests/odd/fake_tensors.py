# A model runs under FakeTensorMode between two steps.
import torch
from told import told
from torch import nn
from torch._subclasses import FakeTensorMode

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
    if step == 2:
        with FakeTensorMode():
            print(nn.Linear(4, 1)(torch.randn(2, 4)).exp().shape)
told(model)
