"""Which of three rings a point lies on."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Rings(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.head = nn.Linear(width, 3)

    def forward(self, points):
        return self.head(self.body(points)).log_softmax(dim=1)


def points(count):
    ring = torch.randint(3, (count,))
    angle, radius = 6.283 * torch.rand(count), 1 + ring + 0.1 * torch.randn(count)
    return TensorDataset(torch.stack([radius * angle.cos(), radius * angle.sin()], 1), ring)


def main():
    torch.manual_seed(523)
    training = DataLoader(points(1200), batch_size=40, shuffle=True)
    model = Rings()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(6):
        model.train()
        right = 0
        for x, ring in training:
            log_probabilities = model(x)
            loss = F.nll_loss(log_probabilities, ring)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += (log_probabilities.detach().argmax(-1) == ring).sum().item()
        print(f"epoch {epoch}: {right / len(training.dataset):.3f}")


if __name__ == "__main__":
    main()
