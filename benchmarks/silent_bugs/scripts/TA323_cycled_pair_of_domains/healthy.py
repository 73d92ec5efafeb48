import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Translation:
    def __init__(self, first, second):
        self.first, self.second = first, second
        self.forth, self.back = nn.Linear(6, 6), nn.Linear(6, 6)
        parameters = itertools.chain(self.forth.parameters(), self.back.parameters())
        self.optimizer = torch.optim.Adam(parameters, lr=1e-2)

    def endless(self, loader):
        while True:
            yield from loader

    def batches(self):
        a, b = self.endless(self.first), self.endless(self.second)
        while True:
            yield next(a)[0], next(b)[0]

    def update(self, a, b):
        loss = (self.back(self.forth(a)) - a).abs().mean() + (self.forth(self.back(b)) - b).abs().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


torch.manual_seed(0)
summer = DataLoader(TensorDataset(torch.randn(96, 6)), batch_size=16, shuffle=True)
winter = DataLoader(TensorDataset(torch.randn(64, 6) + 1), batch_size=16, shuffle=True)
translation = Translation(summer, winter)
for step, (a, b) in zip(range(60), translation.batches(), strict=False):
    loss = translation.update(a, b)
    if step % 20 == 0:
        print(step, loss)
