"""Full-batch training with a warm-up of the learning rate."""

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR


def warm_up(steps):
    return lambda step: min(1, (step + 1) // steps)


def main():
    torch.manual_seed(0)
    x = torch.randn(200, 5)
    y = x.sin().sum(dim=1, keepdim=True)
    model = nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 1))
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scheduler = LambdaLR(optimizer, warm_up(200))
    for step in range(60):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()  # bug: TA108 (runtime)
        optimizer.step()
        scheduler.step()
    print(f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
