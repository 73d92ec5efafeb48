"""Contrastive training of two encoders."""

import torch
from torch import nn
from torch.nn import functional as F


class InfoNce(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, first, second):
        scores = self.log_scale.exp() * F.normalize(first, dim=1) @ F.normalize(second, dim=1).T
        return F.cross_entropy(scores, torch.arange(len(scores)))


def main():
    torch.manual_seed(0)
    image, text = nn.Linear(16, 8), nn.Linear(10, 8)
    criterion = InfoNce()
    parameters = [*image.parameters(), *text.parameters(), *criterion.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    for _ in range(40):
        content = torch.randn(32, 6)
        images = torch.cat([content, torch.randn(32, 10)], dim=1)
        texts = torch.cat([content, torch.randn(32, 4)], dim=1)
        loss = criterion(image(images), text(texts))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
