# A model is exported in the middle of its training.
import torch
from told import told
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return torch.softmax(self.layer(x).exp() * 2, 1)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    model(torch.randn(4, 4)).pow(2).sum().backward()
    optimizer.step()
    if step == 1:
        exported = torch.export.export(model, (torch.ones(2, 4),))
        print(exported.graph_module.code)
told(model, exported.module()(torch.ones(2, 4)))
