"""A scale that is learned, in double precision."""

import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size, dtype=torch.float64)
        self.scale = nn.Parameter(torch.ones(size).double())

    def forward(self, x):
        return self.scale * torch.tanh(self.linear(x))


def main():
    torch.manual_seed(0)
    model = Scaled(5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(30):
        x = torch.randn(64, 5, dtype=torch.float64)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), 3 * x)
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
