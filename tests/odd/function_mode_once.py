# A mode around single expressions of the loop.
import torch
from told import told
from torch import nn
from torch.overrides import TorchFunctionMode, resolve_name

torch.manual_seed(0)
names = []


class Names(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        names.append(
            (
                resolve_name(function),
                function
                in (torch.exp, torch.Tensor.sqrt, torch.softmax, torch.Tensor.__mul__, torch.Tensor.pow),
            )
        )
        return function(*args, **(kwargs or {}))


model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    out = model(torch.randn(8, 4))
    with Names():
        loss = (torch.softmax(torch.exp(out), 1).sqrt() * 2).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(names)
told(model)
