# Modules, optimizers and data sets with an equality and a truth of their own, and no hash.
import torch
from told import told
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def __eq__(self, other):
        raise RuntimeError("not comparable")

    __hash__ = nn.Module.__hash__

    def __len__(self):
        return 0

    def forward(self, x):
        return self.layer(x)


class Data(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        return torch.full((4,), float(index)) / 16

    def __eq__(self, other):
        return True

    __hash__ = None


class Own(torch.optim.SGD):
    def __eq__(self, other):
        return self.param_groups == other.param_groups

    __hash__ = None

    def __bool__(self):
        raise RuntimeError("no truth")


model = Net()
optimizer = Own(model.parameters(), lr=0.1)
for _ in range(2):
    for x in DataLoader(Data(), 4):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
told(model)
