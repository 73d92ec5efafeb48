# A subclass of nn.Parameter and of nn.Linear that makes it.
import torch
from told import told
from torch import nn

torch.manual_seed(0)


class Scaled(nn.Parameter):
    def scaled(self):
        return self * 2


class Linear(nn.Linear):
    def __init__(self, *args):
        super().__init__(*args)
        self.weight = Scaled(self.weight.data)

    def forward(self, x):
        return nn.functional.linear(x, self.weight.scaled(), self.bias)


model = nn.Sequential(Linear(4, 4), nn.ReLU(), Linear(4, 1))
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(6):
    optimizer.zero_grad()
    model(torch.randn(6, 4)).pow(2).mean().backward()
    optimizer.step()
told(model, [type(each).__name__ for each in model.parameters()])
