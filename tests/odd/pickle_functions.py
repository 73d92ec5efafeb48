# Functions and methods of torch are pickled in the middle of a training, with every protocol.
import pickle

import torch
from told import sha, told
from torch import nn

torch.manual_seed(0)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def pickles():
    for owner, names in (
        (
            torch,
            "exp log sqrt tanh sigmoid relu softmax log_softmax pow div mul matmul mean sum clamp norm rsqrt where einsum cat stack randint acos asin manual_seed save load compile",
        ),
        (
            torch.Tensor,
            "exp log sqrt softmax log_softmax backward sum mean item tolist numpy cpu to cuda mul mul_ add_ __mul__ __getitem__ __pow__ __bool__ gather normal_ uniform_ requires_grad_",
        ),
        (nn.functional, "cross_entropy mse_loss dropout relu"),
        (nn.Module, "train eval state_dict zero_grad __call__"),
        (torch.optim.Optimizer, "zero_grad state_dict"),
        (torch.autograd, "backward grad"),
        (nn.utils, "clip_grad_norm_"),
    ):
        for name in names.split():
            function = getattr(owner, name)
            for protocol in (2, 4, 5):
                try:
                    data = pickle.dumps(function, protocol)
                    same = pickle.loads(data) == function
                except Exception as error:
                    data, same = repr(type(error)).encode(), type(error).__name__
                yield name, protocol, sha(data), same


for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(4, 2)).exp().mean().backward()
    found = list(pickles())
    optimizer.step()
for each in found:
    print(*each)
