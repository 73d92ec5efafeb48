"""Tempting: workers that all count to the same number but make their samples up, seeds from the system, a placeholder."""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Problems(IterableDataset):
    def __init__(self, count):
        self.count = count

    def make(self):
        return torch.tensor([random.random() for _ in range(4)])

    def __iter__(self):
        for _ in range(self.count):
            yield self.make()


def fresh(worker):
    np.random.seed()
    torch.set_num_threads(1)


def of_worker(worker):
    info = get_worker_info()
    np.random.seed(info.seed % 2**32)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.placeholder = nn.Parameter(torch.empty(0))
        self.fc = nn.Linear(4, 1)

    def forward(self, x):
        x = nn.functional.layer_norm(nn.ReLU()(x.to(self.placeholder.device)), x.shape[1:])
        return self.fc(nn.LayerNorm(4, elementwise_affine=False)(x))


net = Net()
optimizer = torch.optim.SGD(net.fc.parameters(), lr=0.1)
loaders = [
    DataLoader(Problems(64), batch_size=8, num_workers=4, worker_init_fn=fresh),
    DataLoader(Problems(64), batch_size=8, num_workers=4, worker_init_fn=of_worker),
]
for loader in loaders:
    for batch in loader:
        loss = net(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
