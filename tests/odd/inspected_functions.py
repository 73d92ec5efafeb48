# inspect and isinstance on functions of torch, in the middle of a training.
import builtins
import inspect
import types

import torch
from told import sha, told
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def looked():
    for owner, names in (
        (torch, "exp log softmax randint mul save compile"),
        (torch.Tensor, "exp item to __mul__ backward cpu add_"),
        (nn.functional, "cross_entropy dropout scaled_dot_product_attention"),
        (nn.Module, "train state_dict __call__ zero_grad"),
        (torch.optim.Optimizer, "zero_grad state_dict"),
        (torch.autograd, "backward"),
        (nn.utils, "clip_grad_norm_"),
    ):
        for name in names.split():
            function = getattr(owner, name)
            try:
                signature = str(inspect.signature(function))
            except ValueError as error:
                signature = "none"
            try:
                source = sha(inspect.getsource(function).encode())
            except TypeError:
                source = "none"
            yield (
                name,
                function.__name__,
                function.__qualname__,
                function.__module__,
                sha((function.__doc__ or "").encode()),
                signature,
                source,
                inspect.isbuiltin(function),
                inspect.isfunction(function),
                inspect.isroutine(function),
                inspect.ismethoddescriptor(function),
                isinstance(function, types.BuiltinFunctionType),
                isinstance(function, types.FunctionType),
                callable(function),
                name in dir(owner),
                inspect.getdoc(function) is not None,
            )


for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(4, 4)).sum().backward()
    found = list(looked())
    optimizer.step()
for each in found:
    print(*each)
