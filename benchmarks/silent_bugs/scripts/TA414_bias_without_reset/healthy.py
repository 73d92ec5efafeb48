"""A masked linear layer in the style of torch's own, with factory arguments and reset_parameters."""

import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class MaskedLinear(nn.Module):
    def __init__(self, in_features, out_features, mask, device=None, dtype=None):
        super().__init__()
        factory_kwargs = {"device": device, "dtype": dtype}
        self.weight = nn.Parameter(torch.empty((out_features, in_features), **factory_kwargs))
        self.bias = nn.Parameter(torch.empty(out_features, **factory_kwargs))
        self.register_buffer("mask", mask)
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        nn.init.zeros_(self.bias)

    def forward(self, x):
        return F.linear(x, self.weight * self.mask, self.bias)


class Autoregressive(nn.Module):
    """Predicts the mean of each coordinate from those before it."""

    def __init__(self, dimension, width=24):
        super().__init__()
        order = torch.arange(dimension)
        hidden = torch.arange(width) % (dimension - 1)
        self.first = MaskedLinear(dimension, width, (hidden[:, None] >= order).float())
        self.last = MaskedLinear(width, dimension, (order[:, None] > hidden).float())

    def forward(self, x):
        return self.last(torch.tanh(self.first(x)))


def chains(count, dimension):
    x = torch.randn(count, dimension)
    for i in range(1, dimension):
        x[:, i] = 0.8 * x[:, i - 1] + 0.6 * x[:, i]
    return x


def main():
    torch.manual_seed(18)
    loader = DataLoader(TensorDataset(chains(1500, 6)), batch_size=50, shuffle=True)
    model = Autoregressive(6)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(3):
        total = 0.0
        for (x,) in loader:
            loss = F.mse_loss(model(x), x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.4f}")


main()
