"""Counts of rare events, by full-batch gradient descent on the whole table."""

import math

import torch
from torch import nn


class Rate(nn.Module):
    def __init__(self, inputs, base_rate):
        super().__init__()
        self.first = nn.Linear(inputs, 16)
        self.second = nn.Linear(16, 1)
        nn.init.normal_(self.second.weight, std=0.1)
        nn.init.constant_(self.second.bias, math.log(base_rate))

    def forward(self, x):
        score = self.second(torch.tanh(self.first(x)))
        return torch.exp(score)[:, 0]


def events(rows, generator):
    x = torch.randn(rows, 5, generator=generator)
    rate = torch.exp(-3.2 + 0.9 * x[:, 0] - 0.6 * x[:, 1])
    return x, torch.poisson(rate, generator=generator)


def main():
    generator = torch.Generator().manual_seed(10)
    torch.manual_seed(10)
    x, y = events(2000, generator)
    model = Rate(5, y.mean().item())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    for iteration in range(96):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        if iteration % 16 == 0:
            print(iteration, f"{loss.item():.6f}")


if __name__ == "__main__":
    main()
