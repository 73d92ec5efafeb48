"""A stack of layers."""

import torch
from torch import nn


class Stack(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return self.head(x)


def main():
    torch.manual_seed(0)
    stack = Stack(12, 4)
    optimizer = torch.optim.Adam(stack.parameters(), lr=1e-3)
    for _ in range(30):
        x = torch.randn(32, 12)
        loss = nn.functional.mse_loss(stack(x), x.abs().sum(dim=1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(sum(p.numel() for p in stack.parameters()), loss.item())


if __name__ == "__main__":
    main()
