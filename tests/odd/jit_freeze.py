# A scripted model is frozen and evaluated after it was trained.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).sum().backward()
    optimizer.step()
frozen = torch.jit.freeze(torch.jit.script(model.eval()))
told(model, frozen(torch.ones(2, 4)))
