# A wrapper subclass without storage of its own as the input.
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

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        unwrap = lambda each: each.inner if isinstance(each, Wrapped) else each
        result = function(*tree_map(unwrap, args), **tree_map(unwrap, kwargs or {}))
        return tree_map(lambda each: Wrapped(each) if isinstance(each, torch.Tensor) else each, result)

    def __repr__(self):
        return "Wrapped"


model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(8):
    optimizer.zero_grad()
    model(Wrapped(torch.randn(6, 8))).pow(2).mean().backward()
    for parameter in model.parameters():
        parameter.grad = parameter.grad.inner if isinstance(parameter.grad, Wrapped) else parameter.grad
    optimizer.step()
told(model)
