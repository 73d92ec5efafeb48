# Modules with slots, properties that raise, and descriptors.
import torch
from told import told
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    __slots__ = ("extra",)

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)
        self.reads = 0
        self.extra = [torch.ones(1)]

    @property
    def device(self):
        return next(self.parameters()).device

    @property
    def counted(self):
        self.reads += 1
        return self.reads

    @property
    def broken(self):
        raise RuntimeError("do not read me")

    def forward(self, x):
        return self.layer(x.to(self.device)) * self.extra[0]


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
print(model.counted, sorted(vars(model)))
told(model)
