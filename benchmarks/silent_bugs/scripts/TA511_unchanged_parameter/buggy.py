"""Trains in pure bfloat16 to save memory."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 2))
    model = model.to(torch.bfloat16)
    nn.init.uniform_(model[0].weight, 0.5, 1.0)
    nn.init.uniform_(model[2].weight, 0.5, 1.0)
    dtype = model[0].weight.dtype
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)  # bug: TA511 (runtime)
    for _ in range(20):
        x = torch.randn(32, 16)
        y = (x.sum(dim=1) > 0).long()
        loss = nn.functional.cross_entropy(model(x.to(dtype)).float(), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
