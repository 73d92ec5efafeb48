# A subclass by _make_subclass, as a parameter.
import torch
from told import told
from torch import nn

torch.manual_seed(0)


class Named(torch.Tensor):
    @staticmethod
    def __new__(cls, data, label):
        made = torch.Tensor._make_subclass(cls, data, True)
        made.label = label
        return made


weight = nn.Parameter(torch.randn(4, 1))
special = Named(torch.randn(4, 1), "mine")
optimizer = torch.optim.Adam([weight, special], lr=0.01)
for _ in range(6):
    optimizer.zero_grad()
    (torch.randn(8, 4) @ (weight + special)).pow(2).mean().backward()
    optimizer.step()
print(special.label, type(special).__name__)
told(weight, special)
