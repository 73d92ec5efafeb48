"""An MLP of a given depth."""

import torch
from torch import nn


class Deep(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.inner = nn.Linear(4, width)
        self.hidden = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.outer = nn.Linear(width, 1)

    def forward(self, x):
        x = torch.relu(self.inner(x))
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return self.outer(x)


def main():
    torch.manual_seed(0)
    deep = Deep(32, 3)
    optimizer = torch.optim.Adam(deep.parameters(), lr=1e-3)
    for step in range(30):
        x = torch.randn(64, 4)
        loss = nn.functional.mse_loss(deep(x), x.norm(dim=1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
