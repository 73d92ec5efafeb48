# A wrapper subclass as a buffer and in the state of an optimizer.
import torch
from told import told
from torch import nn

torch.manual_seed(0)


class Empty(torch.Tensor):
    @staticmethod
    def __new__(cls, size):
        return torch.Tensor._make_wrapper_subclass(cls, size, dtype=torch.float32)

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise NotImplementedError(f"no {function}")

    def __repr__(self):
        return "Empty"


model = nn.Linear(4, 1)
model.register_buffer("empty", Empty((3,)), persistent=False)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(6, 4)).pow(2).mean().backward()
    optimizer.step()
    for state in optimizer.state.values():
        state["note"] = model.empty
told(model)
