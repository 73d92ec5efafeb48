"""Fine-tunes a small encoder on a second task; the config says which stages stay as they are."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CONFIG = {"freeze": ["stem", "middle"], "pretrain_epochs": 2, "tune_epochs": 2, "lr": 0.05}


class Encoder(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
        self.middle = nn.Sequential(nn.Linear(32, 32), nn.ReLU())
        self.head = nn.Linear(32, outputs)

    def forward(self, x):
        return self.head(self.middle(self.stem(x)))


def task(count, classes, weights):
    x = torch.randn(count, 8)
    return DataLoader(
        TensorDataset(x, (x @ weights).relu()[:, :classes].argmax(1)), batch_size=32, shuffle=True
    )


def freeze(model, stages):
    for name, stage in model.named_children():
        if name in stages:
            setattr(stage, "requires_grad", False)  # bug: TA425


def fit(model, loader, epochs, lr):
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=lr, momentum=0.9)
    for epoch in range(epochs):
        total = 0.0
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"  {total / len(loader):.3f}")


def main(config):
    torch.manual_seed(63)
    weights = torch.randn(8, 5)
    model = Encoder(5)
    print("first task")
    fit(model, task(960, 5, weights), config["pretrain_epochs"], config["lr"])
    model.head = nn.Linear(32, 3)
    freeze(model, config["freeze"])
    print("second task")
    fit(model, task(640, 3, weights), config["tune_epochs"], config["lr"])


main(CONFIG)
