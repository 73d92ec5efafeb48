# A model is traced between two steps, saved and loaded.
import io

import torch
from told import told
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return torch.softmax(self.layer(x).exp(), 1)[:, :2] * 2


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    optimizer.zero_grad()
    model(torch.randn(4, 4)).pow(2).sum().backward()
    optimizer.step()
    if step in (1, 4):
        traced = torch.jit.trace(model, torch.ones(2, 4))
        print(traced.graph, traced.code)
        buffer = io.BytesIO()
        torch.jit.save(traced, buffer)
        buffer.seek(0)
        told(torch.jit.load(buffer))
told(model, traced(torch.ones(2, 4)))
