# A tensor subclass with a table of functions that it handles, filled in the middle of the run too.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
TABLE = {}
calls = []


def handles(function):
    def add(own):
        TABLE[function] = own
        return own

    return add


class Logged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        calls.append(torch.overrides.resolve_name(function) or getattr(function, "__name__", "?"))
        if function in TABLE:
            return TABLE[function](*args, **(kwargs or {}))
        return super().__torch_function__(function, types, args, kwargs)


@handles(torch.exp)
def own_exp(x):
    return x.as_subclass(torch.Tensor).exp() + 1


model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    x = torch.randn(8, 4).as_subclass(Logged)
    optimizer.zero_grad()
    (torch.exp(model(x)) + torch.softmax(x, 1).log().sqrt().nan_to_num()[:, 0] * 2).pow(2).mean().backward()
    optimizer.step()
    if step == 3:

        @handles(torch.Tensor.sqrt)
        def own_sqrt(x):
            return x

        TABLE[torch.softmax] = lambda x, dim: x
print(calls)
told(model)
