"""A frozen backbone, whose normalisation stays in evaluation, and a new head; in the last epoch all is trained."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 6, 3, stride=2, bias=False),
            nn.BatchNorm2d(6),
            nn.ReLU(),
            nn.Conv2d(6, 8, 3),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.head = nn.Linear(8 * 9, 3)

    def forward(self, x):
        return self.head(self.backbone(x))


def train(model, loader, optimizer):
    for images, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()


def main(seed=0, batch_size=16):
    torch.manual_seed(seed)
    labels = torch.randint(3, (140,))
    images = 0.3 * torch.randn(140, 1, 11, 11)
    images[torch.arange(140), 0, 4 * labels] += 1.0
    loader = DataLoader(TensorDataset(images, labels), batch_size=batch_size, shuffle=True)
    model = Model()
    model.backbone.requires_grad_(False)
    optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1, momentum=0.9)
    for _epoch in range(3):
        model.train()
        model.backbone.eval()
        train(model, loader, optimizer)
    model.backbone.requires_grad_(True)
    optimizer = torch.optim.AdamW(
        [{"params": model.backbone.parameters(), "lr": 1e-4}, {"params": model.head.parameters(), "lr": 1e-3}]
    )
    model.train()
    train(model, loader, optimizer)
    model.eval()
    with torch.no_grad():
        print((model(images).argmax(dim=1) == labels).float().mean().item())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
