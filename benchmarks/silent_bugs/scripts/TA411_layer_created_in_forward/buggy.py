"""Adapts the width of its input on the fly."""

import torch
import torch.nn as nn


class Adapter(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.inputs, self.width = inputs, width
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        project = nn.Linear(self.inputs, self.width)  # bug: TA411
        hidden = torch.tanh(project(x))
        return self.head(hidden)


def main():
    torch.manual_seed(0)
    adapter = Adapter(9, 16)
    optimizer = torch.optim.SGD(adapter.parameters(), lr=0.1)
    for _ in range(30):
        x = torch.randn(32, 9)
        y = x[:, :3].argmax(dim=1)
        loss = nn.functional.cross_entropy(adapter(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
