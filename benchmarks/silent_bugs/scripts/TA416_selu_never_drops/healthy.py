"""A self-normalising network with SELU and alpha dropout."""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class SelfNormalising(nn.Module):
    def __init__(self, features, classes, width=32, depth=3, p=0.1):
        super().__init__()
        sizes = [features] + [width] * depth
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.out = nn.Linear(width, classes)
        self.p = p
        for layer in self.layers:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="linear")
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        for layer in self.layers:
            x = F.selu(layer(x))
            x = F.alpha_dropout(x, self.p, training=self.training)
        return self.out(x)


def table(count, features=10, classes=3):
    x = torch.randn(count, features)
    score = torch.stack([x[:, 0] * x[:, 1], x[:, 2] + x[:, 3], x[:, 4].abs() - 0.5], dim=1)
    return TensorDataset(x, score.argmax(dim=1))


@torch.no_grad()
def validate(model, loader):
    model.eval()
    right = sum(int((model(x).argmax(1) == y).sum()) for x, y in loader)
    model.train()
    return right / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--dropout", type=float, default=0.1)
    args = parser.parse_args()
    torch.manual_seed(41)
    train_loader = DataLoader(table(1600), batch_size=32, shuffle=True)
    valid_loader = DataLoader(table(400), batch_size=100)
    model = SelfNormalising(10, 3, p=args.dropout)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(args.epochs):
        total = 0.0
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(train_loader):.3f} accuracy {validate(model, valid_loader):.3f}")


main()
