"""Trains in a function that was made from an evaluation."""

import torch
from torch import nn


def epoch(model, batches, criterion, optimizer):
    total = 0.0
    for x, y in batches:
        optimizer.zero_grad()
        outputs = model(x)
        loss = criterion(outputs, y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(batches)


def main():
    torch.manual_seed(0)
    batches = [(torch.randn(16, 5), torch.randint(3, (16,))) for _ in range(10)]
    model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    print(epoch(model, batches, nn.CrossEntropyLoss(), optimizer))


if __name__ == "__main__":
    main()
