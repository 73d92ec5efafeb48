"""Keeps a running mean of the loss."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Linear(30, 5).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    running = torch.zeros((), device=device)
    for step in range(50):
        x = torch.randn(64, 30, device=device)
        y = torch.randint(5, (64,), device=device)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss.detach()
    print(float(running) / 50)


if __name__ == "__main__":
    main()
