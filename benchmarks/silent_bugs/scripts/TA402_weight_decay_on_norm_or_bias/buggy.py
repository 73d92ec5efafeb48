"""A transformer block, trained from scratch."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Model(nn.Module):
    def __init__(self, width=16, depth=3):
        super().__init__()
        self.blocks = nn.Sequential(*(Block(width) for _ in range(depth)))
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        return self.head(self.blocks(x))


def configure(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)  # bug: TA402 (runtime)


def main():
    torch.manual_seed(0)
    model = Model()
    optimizer = configure(model)
    for _ in range(20):
        x = torch.randn(32, 16)
        y = x[:, :4].argmax(dim=1)
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(loss.item())


if __name__ == "__main__":
    main()
