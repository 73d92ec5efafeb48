"""An encoder and a head, each a module of its own."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
    head = nn.Linear(32, 1)  # bug: TA432
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
    for _ in range(40):
        x = torch.randn(32, 8)
        prediction = head(encoder(x))
        loss = nn.functional.mse_loss(prediction, x.sum(dim=1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
