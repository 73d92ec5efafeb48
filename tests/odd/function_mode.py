# A TorchFunctionMode over the training names each function that the script calls.
import torch
from told import told
from torch import nn
from torch.overrides import TorchFunctionMode, resolve_name

torch.manual_seed(0)
names = []


class Names(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        names.append(resolve_name(function) or function.__name__)
        return function(*args, **(kwargs or {}))


model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with Names():
    for _ in range(4):
        optimizer.zero_grad()
        (torch.softmax(model(torch.randn(8, 4)).exp(), 1).log() * 2).sqrt().nan_to_num().pow(
            2
        ).mean().backward()
        optimizer.step()
print(len(names), names)
told(model)
