# A wrapper subclass as a parameter, with its state in an optimizer, as quantised training has it.
import torch
from told import told
from torch import nn
from torch.utils._pytree import tree_map

torch.manual_seed(0)


class Wrapped(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad
        )

    def __init__(self, inner):
        self.inner = inner

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner, meta, size, stride):
        return Wrapped(inner["inner"])

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        unwrap = lambda each: each.inner if isinstance(each, Wrapped) else each
        result = function(*tree_map(unwrap, args), **tree_map(unwrap, kwargs or {}))
        if function.__name__.split(".")[0].endswith("_"):
            return args[0]
        return tree_map(lambda each: Wrapped(each) if isinstance(each, torch.Tensor) else each, result)

    def __repr__(self):
        return "Wrapped"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(Wrapped(torch.randn(4, 2)))

    def forward(self, x):
        return x @ self.weight


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
for _ in range(6):
    optimizer.zero_grad()
    model(torch.randn(6, 4)).pow(2).mean().backward()
    optimizer.step()
told(model.weight.inner)
