"""A spline-like activation with learnable slopes in a small regression network."""

import logging

import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger(__name__)


class Slopes(nn.Module):
    """Piecewise linear through the origin, with a slope of its own per channel on each side."""

    def __init__(self, channels):
        super().__init__()
        self.slopes = torch.full((2, channels), 0.5, requires_grad=True)  # bug: TA413

    def forward(self, x):
        below, above = self.slopes
        return above * x.clamp(min=0) + (below - 0.8) * x.clamp(max=0)


def network(width):
    layers = [nn.Linear(4, width), Slopes(width), nn.Linear(width, width), Slopes(width), nn.Linear(width, 1)]
    return nn.Sequential(*layers)


def main():
    torch.manual_seed(16)
    model = network(20)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=50, gamma=0.5)
    hidden = torch.randn(4, 3)
    for step in range(1, 151):
        x = torch.randn(50, 4)
        y = (x @ hidden).abs().mean(dim=1, keepdim=True)
        loss = nn.functional.l1_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 50 == 0:
            log.info("step %d loss %.4f rate %.4f", step, loss.item(), scheduler.get_last_lr()[0])


if __name__ == "__main__":
    main()
