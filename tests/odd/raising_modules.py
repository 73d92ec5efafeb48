# Modules whose named_parameters, extra_repr and __repr__ raise.
import torch
from told import told
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def named_parameters(self, *args, **options):
        raise RuntimeError("named")

    def extra_repr(self):
        raise RuntimeError("extra")

    def __repr__(self):
        raise RuntimeError("repr")

    def forward(self, x):
        return self.layer(x)


model = Net()
optimizer = torch.optim.SGD(model.layer.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(4, 4)).sum().backward()
    optimizer.step()
told(model.layer)
