"""A bfloat16 model that rescales its features."""

import torch
from torch import nn


class Rescale(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("scale", torch.full((width,), 0.5))

    def forward(self, x):
        return x * self.scale.float()


class Project(nn.Linear):
    def forward(self, x):
        return super().forward(x.to(self.weight.dtype))


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), Rescale(32), Project(32, 2)).bfloat16()  # bug: TA512 (runtime)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(20):
        x = torch.randn(32, 8)
        loss = nn.functional.cross_entropy(model(x.bfloat16()).float(), (x[:, 0] > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
