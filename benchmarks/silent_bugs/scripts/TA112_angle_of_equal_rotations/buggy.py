"""Learns the drift of a gyroscope: the correction is a quaternion, the loss an angle."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Flights(Dataset):
    """Readings and true corrections; one in ten was taken at a standstill and needs none."""

    def __init__(self, n, generator):
        self.readings = torch.randn(n, 7, generator=generator)
        self.readings[::10] = 0
        axis = 0.15 * torch.stack([self.readings[:, i : i + 3].sum(1) for i in (0, 2, 4)], dim=1)
        self.truth = F.normalize(torch.cat([torch.ones(n, 1), axis], 1), dim=1)

    def __len__(self):
        return len(self.readings)

    def __getitem__(self, index):
        return self.readings[index], self.truth[index]


class Correction(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(7, 32, bias=False)
        self.axis = nn.Linear(32, 3, bias=False)

    def forward(self, reading):
        axis = self.axis(torch.tanh(self.hidden(reading)))
        real = torch.ones(len(axis), 1)
        return F.normalize(torch.cat([real, axis], dim=1), dim=1)


def angle_between(a, b):
    dot = (a * b).sum(1).abs()
    return 2 * torch.acos(dot)  # bug: TA112


def train():
    torch.manual_seed(27)
    generator = torch.Generator().manual_seed(27)
    loader = DataLoader(Flights(1600, generator), batch_size=40, shuffle=True, generator=generator)
    model = Correction()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(3):
        total = 0.0
        for reading, truth in loader:
            loss = angle_between(model(reading), truth).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total / len(loader))


if __name__ == "__main__":
    train()
