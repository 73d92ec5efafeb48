"""Keeps the best weights."""

import torch
from torch import nn


def fit(model, train, validation, epochs=10):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    best, best_state = float("inf"), None
    for _ in range(epochs):
        for x, y in train:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        with torch.no_grad():
            error = nn.functional.mse_loss(model(validation[0]), validation[1]).item()
        if error < best:
            best = error
            best_state = model.state_dict()  # bug: TA616
    model.load_state_dict(best_state)
    return best


def main():
    torch.manual_seed(0)
    x = torch.randn(8, 16, 4)
    batches = [(each, each.sum(dim=1, keepdim=True) + torch.randn(16, 1)) for each in x]
    print(fit(nn.Linear(4, 1), batches[:6], batches[6]))


if __name__ == "__main__":
    main()
