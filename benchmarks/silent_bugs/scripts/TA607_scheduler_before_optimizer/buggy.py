"""Cosine decay of the learning rate."""

import torch
from torch import nn
from torch.optim import lr_scheduler


def main():
    torch.manual_seed(0)
    model = nn.Linear(6, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    scheduler = lr_scheduler.CosineAnnealingLR(optimizer, T_max=40)
    for step in range(40):
        scheduler.step()  # bug: TA607
        x = torch.randn(32, 6)
        loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(dim=1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item(), scheduler.get_last_lr())


if __name__ == "__main__":
    main()
