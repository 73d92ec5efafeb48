"""Switched from SGD to Adam, and kept the rest of the settings."""

import torch
from torch import nn

SETTINGS = {"lr": 1.0, "hidden": 64, "steps": 40}


def build(hidden):
    return nn.Sequential(
        nn.Linear(16, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 4)
    )


def main():
    torch.manual_seed(7)
    model = build(SETTINGS["hidden"])
    optimizer = torch.optim.Adam(model.parameters(), lr=SETTINGS["lr"])  # bug: TA107 (runtime)
    criterion = nn.CrossEntropyLoss()
    for _ in range(SETTINGS["steps"]):
        x = torch.randn(64, 16)
        y = x[:, :4].argmax(dim=1)
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
