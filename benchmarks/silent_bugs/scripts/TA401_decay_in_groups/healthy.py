"""Tabular regression; the optimizer is looked up by its name in the config."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CONFIG = {
    "optimizer": "adamw",
    "lr": 3e-3,
    "decay": 0.02,
    "epochs": 3,
    "width": 32,
}
CHOICES = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}


def parameter_groups(model, decay):
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    rest = [p for p in model.parameters() if p.ndim < 2]
    return [{"params": matrices, "weight_decay": decay}, {"params": rest, "weight_decay": 0.0}]


def build_optimizer(model, config):
    groups = parameter_groups(model, config["decay"])
    return CHOICES[config["optimizer"]](groups, lr=config["lr"])


def make_data(count=1500):
    x = torch.randn(count, 6)
    y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2] * x[:, 2:3] + 0.1 * torch.randn(count, 1)
    return TensorDataset(x, y)


def train(model, loader, optimizer, epochs):
    criterion = nn.SmoothL1Loss()
    for epoch in range(epochs):
        running = 0.0
        for x, y in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item() * len(x)
        print(epoch, round(running / len(loader.dataset), 4))


if __name__ == "__main__":
    torch.manual_seed(11)
    width = CONFIG["width"]
    net = nn.Sequential(
        nn.Linear(6, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1)
    )
    train(
        net,
        DataLoader(make_data(), batch_size=30, shuffle=True),
        build_optimizer(net, CONFIG),
        CONFIG["epochs"],
    )
