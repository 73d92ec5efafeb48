"""A multilayer perceptron of bare parameters and F.linear."""

import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class BareMLP(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.matrices = nn.ParameterList()
        self.offsets = nn.ParameterList()
        for inputs, outputs in zip(sizes, sizes[1:]):
            bound = math.sqrt(6 / (inputs + outputs))
            self.matrices.append(nn.Parameter(torch.empty(outputs, inputs).uniform_(-bound, bound)))
            self.offsets.append(nn.Parameter(torch.zeros(outputs)))
        self.gain = nn.Parameter(torch.ones(sizes[-1]))
        self.shift = nn.Parameter(torch.zeros(sizes[-1]))

    def forward(self, x):
        last = len(self.matrices) - 1
        for i, (matrix, offset) in enumerate(zip(self.matrices, self.offsets)):
            x = F.linear(x, matrix, offset)
            if i < last:
                x = torch.tanh(x)
        return self.gain * x + self.shift


def waves(count):
    x = 2 * torch.rand(count, 2) - 1
    y = torch.stack([torch.sin(3 * x[:, 0]), x[:, 0] * x[:, 1]], dim=1)
    return TensorDataset(x, y + 0.02 * torch.randn_like(y))


def main():
    torch.manual_seed(19)
    loader = DataLoader(waves(1200), batch_size=30, shuffle=True)
    model = BareMLP([2, 24, 24, 2])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.7)
    for epoch in range(4):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        scheduler.step()
        print(f"epoch {epoch} loss {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
