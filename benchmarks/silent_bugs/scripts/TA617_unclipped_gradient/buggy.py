"""Trains with a plain loop."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for step in range(60):
        x = torch.randn(32, 6)
        if step in (52, 57):  # now and then a batch of another instrument comes
            x = 200 * x
        loss = nn.functional.mse_loss(model(x), x.sum(dim=1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # bug: TA617
    print(loss.item())


if __name__ == "__main__":
    main()
