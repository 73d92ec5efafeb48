"""Fine-tunes a head on a frozen backbone."""

import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x):
        return self.layers(x)


def fine_tune(backbone, head, steps=30):
    model = nn.Sequential(backbone, head)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        x = torch.randn(32, 10)
        y = x[:, :4].argmax(dim=1)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    backbone = Backbone()
    backbone.requires_grad = False  # bug: TA425
    print(fine_tune(backbone, nn.Linear(16, 4)))


if __name__ == "__main__":
    main()
