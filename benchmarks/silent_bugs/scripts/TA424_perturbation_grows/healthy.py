"""Trains on clean samples for two epochs, then on samples that are perturbed against the model."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

SETTINGS = {"epochs": 4, "clean_epochs": 2, "radius": 0.15, "rounds": 2, "rate": 0.1}


def attack(model, x, labels, radius, rounds):
    offset = torch.zeros(x.shape, requires_grad=True)
    for _ in range(rounds):
        loss = F.cross_entropy(model(x + offset), labels)
        (slope,) = torch.autograd.grad(loss, [offset])
        with torch.no_grad():
            offset += radius / rounds * slope.sign()
    return (x + offset).detach()


def half_moons(count):
    angle = 3.1416 * torch.rand(count)
    labels = torch.randint(2, (count,))
    flip = 1 - 2 * labels.float()
    x = torch.stack([flip * angle.cos() + labels - 0.5, flip * angle.sin() + 0.3 * labels - 0.15], dim=1)
    return TensorDataset(x + 0.1 * torch.randn_like(x), labels)


def train(settings):
    torch.manual_seed(61)
    loader = DataLoader(half_moons(800), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=settings["rate"], momentum=0.9)
    for epoch in range(settings["epochs"]):
        total = 0.0
        for x, labels in loader:
            if epoch >= settings["clean_epochs"]:
                x = attack(model, x, labels, settings["radius"], settings["rounds"])
            loss = F.cross_entropy(model(x), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.3f}")


if __name__ == "__main__":
    train(SETTINGS)
