# Modules with a metaclass, __new__, dataclass fields and generic bases.
import abc
import dataclasses
import typing

import torch
from told import told
from torch import nn

torch.manual_seed(0)
T = typing.TypeVar("T")


class Meta(abc.ABCMeta):
    def __call__(cls, *args, **options):
        made = super().__call__(*args, **options)
        made.made_by = cls.__name__
        return made


class Base(nn.Module, typing.Generic[T], metaclass=Meta):
    def __new__(cls, *args):
        return super().__new__(cls)


@dataclasses.dataclass(eq=False)
class Net(Base[int]):
    width: int

    def __post_init__(self):
        super().__init__()
        self.layer = nn.Linear(4, self.width)

    def forward(self, x):
        return self.layer(x)


try:
    model = Net(2)
except AttributeError as error:
    print(error)
    raise SystemExit(3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
print(model.made_by, model.width)
told(model)
