"""A linear classifier of two classes."""

import torch
from torch import nn


def labelled(count):
    x = torch.randn(count, 6)
    return x, torch.sign(x[:, :1] + 0.1)


def main():
    torch.manual_seed(0)
    classifier = nn.Linear(6, 1)
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(classifier.parameters(), lr=0.1)
    for step in range(40):
        x, y = labelled(64)
        loss = criterion(classifier(x), y)  # bug: TA315 (runtime)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
