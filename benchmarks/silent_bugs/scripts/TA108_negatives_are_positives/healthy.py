"""Triplet training of an embedding; negatives are other rows of the batch."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Projector(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(20, 40)
        self.b = nn.Linear(40, 12)

    def forward(self, x):
        return F.normalize(self.b(F.mish(self.a(x))), dim=1)


def views(n):
    identity = torch.randn(n, 5)
    lift = torch.randn(5, 20)
    first = identity @ lift + 1.5 * torch.randn(n, 20)
    second = identity @ lift + 1.5 * torch.randn(n, 20)
    return TensorDataset(first / 2.5, second / 2.5)


def triplet(anchor, positive, negative, margin):
    near = (anchor - positive).square().sum(1)
    far = (anchor - negative).square().sum(1)
    return F.relu(near - far + margin).mean()


def train(epochs=1, margin=1.0):
    torch.manual_seed(17)
    loader = DataLoader(views(2160), batch_size=24, shuffle=True)
    model = Projector()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        shift = 1 + epoch
        for step, (first, second) in enumerate(loader):
            anchor, positive = model(first), model(second)
            negative = positive.roll(shift, dims=0)
            loss = triplet(anchor, positive, negative, margin)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 20 == 0:
                print(epoch, step, loss.item())


train()
