# The script replaces functions of torch by its own, before and while it trains, and puts some back.
import functools

import torch
from told import told
from torch import nn

torch.manual_seed(0)
counts = {}


def counted(owner, name):
    original = getattr(owner, name)

    @functools.wraps(original)
    def run(*args, **options):
        counts[name] = counts.get(name, 0) + 1
        return original(*args, **options)

    setattr(owner, name, run)
    return lambda: setattr(owner, name, original)


back = [
    counted(torch, "exp"),
    counted(torch.Tensor, "sqrt"),
    counted(nn.functional, "mse_loss"),
    counted(torch.Tensor, "backward"),
    counted(torch.optim.SGD, "step"),
    counted(nn.Module, "__call__"),
    counted(torch.Tensor, "item"),
]
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(9):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(torch.exp(model(torch.randn(8, 4))).sqrt(), torch.ones(8, 1))
    loss.backward()
    optimizer.step()
    loss.item()
    if step == 3:
        back.append(counted(torch, "log"))
        back.append(counted(torch.Tensor, "exp"))
        back.pop(1)()
    if step == 6:
        [undo() for undo in reversed(back)]
    torch.log(loss).exp()
print(counts, torch.exp.__name__)
told(model)
