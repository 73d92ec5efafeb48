"""Normalizing flow in one dimension, with a linear decay of the rate."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Plan:
    epochs: int = 10
    batch_size: int = 50
    lr: float = 1e-2
    devices: int = 4


class MixtureDensity(nn.Module):
    """The density of y given x, as a mixture of normals."""

    def __init__(self, components=4, width=24):
        super().__init__()
        self.hidden = nn.Linear(1, width)
        self.weights, self.means, self.scales = (nn.Linear(width, components) for _ in range(3))

    def forward(self, x, y):
        hidden = torch.tanh(self.hidden(x))
        scale = F.softplus(self.scales(hidden)) + 1e-2
        normal = torch.distributions.Normal(self.means(hidden), scale)
        mixture = self.weights(hidden).log_softmax(1) + normal.log_prob(y)
        return -mixture.logsumexp(1).mean()


def branches(count):
    x = torch.rand(count, 1) * 2 - 1
    side = torch.randint(2, (count, 1)) * 2.0 - 1
    return TensorDataset(x, side * (0.5 + x.square()) + 0.1 * torch.randn(count, 1))


def main(plan):
    torch.manual_seed(230)
    loader = DataLoader(branches(1200), batch_size=plan.batch_size, shuffle=True)
    model = MixtureDensity()
    optimizer = torch.optim.Adam(model.parameters(), lr=plan.lr)
    total_steps = plan.epochs * len(loader)
    schedule = torch.optim.lr_scheduler.LinearLR(
        optimizer, start_factor=1.0, end_factor=0.0, total_iters=total_steps
    )
    for epoch in range(plan.epochs):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = model(x, y)
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.4f}")


if __name__ == "__main__":
    main(Plan())
