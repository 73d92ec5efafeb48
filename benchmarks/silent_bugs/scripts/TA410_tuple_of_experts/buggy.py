"""Mixture of experts with a soft gate; regression of a function in pieces."""

import torch
from torch import nn


class Expert(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.hidden = nn.Linear(inputs, width)
        self.value = nn.Linear(width, 1)

    def forward(self, x):
        return self.value(nn.functional.gelu(self.hidden(x)))


class Mixture(nn.Module):
    def __init__(self, inputs=3, experts=4, width=16):
        super().__init__()
        self.gate = nn.Linear(inputs, experts)
        self.experts = tuple(Expert(inputs, width) for _ in range(experts))  # bug: TA410

    def forward(self, x):
        share = self.gate(x).softmax(dim=-1)
        opinions = torch.cat([expert(x) for expert in self.experts], dim=-1)
        return (share * opinions).sum(dim=-1)


def pieces(count):
    x = torch.randn(count, 3)
    y = torch.where(x[:, 0] > 0, 2 * x[:, 1], x[:, 2] ** 2 - 1)
    return x, y


def main(steps=200):
    torch.manual_seed(23)
    model = Mixture()
    optimizer = torch.optim.Adamax(model.parameters(), lr=0.02)
    average = None
    for step in range(steps):
        x, y = pieces(64)
        loss = nn.functional.huber_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average = loss.item() if average is None else 0.95 * average + 0.05 * loss.item()
        if step % 50 == 49:
            print(f"{step + 1:4d}  {average:.4f}")


main()
