# Deep recursion: a recursive model, a low limit, and a RecursionError that is caught.
import sys

import torch
from told import told
from torch import nn

torch.manual_seed(0)


class Deep(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.next = Deep(depth - 1) if depth else None

    def forward(self, x):
        x = torch.tanh(self.layer(x))
        return x if self.next is None else self.next(x)


def fall(depth):
    return torch.ones(1).exp().item() + fall(depth + 1)


model = Deep(25)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
    try:
        fall(0)
    except RecursionError as error:
        print("caught")
print(sys.getrecursionlimit())
told(model)
