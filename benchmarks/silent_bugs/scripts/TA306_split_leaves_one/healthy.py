"""Energy of molecules from descriptors, with a validation split."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split

CONFIG = {"rows": 2001, "validation": 390, "batch_size": 32, "epochs": 3, "lr": 2e-3}


def descriptors(rows):
    x = torch.rand(rows, 8)
    energy = (x[:, :4] * x[:, 4:]).sum(1, keepdim=True) - x.mean(1, keepdim=True)
    return TensorDataset(x - 0.5, energy)


def make_loaders(config):
    data = descriptors(config["rows"])
    sizes = [len(data) - config["validation"], config["validation"]]
    train, valid = random_split(data, sizes)
    return (
        DataLoader(train, batch_size=config["batch_size"], shuffle=True),
        DataLoader(valid, batch_size=200),
    )


class Energy(nn.Sequential):
    def __init__(self, width=40):
        super().__init__(
            nn.Linear(8, width, bias=False),
            nn.BatchNorm1d(width),
            nn.Softplus(),
            nn.Linear(width, 1),
        )


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        errors = [(model(x) - y).abs().sum().item() for x, y in loader]
    return sum(errors) / len(loader.dataset)


def main(config):
    torch.manual_seed(44)
    train_loader, valid_loader = make_loaders(config)
    model = Energy()
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
    for epoch in range(config["epochs"]):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            nn.functional.l1_loss(model(x), y).backward()
            optimizer.step()
        print(f"epoch {epoch} mean error {evaluate(model, valid_loader):.4f}")


main(CONFIG)
