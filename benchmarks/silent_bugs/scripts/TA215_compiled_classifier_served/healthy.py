"""Trains a compiled classifier and hands its weights to a small service."""

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, features=12, classes=4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        return self.head(self.body(x))


class Service:
    def __init__(self, path):
        self.model = Classifier()
        state = torch.load(path, map_location="cpu", weights_only=True)
        self.model.load_state_dict(state["model"], strict=False)
        self.model.eval()

    @torch.no_grad()
    def answer(self, x):
        return self.model(x).argmax(1)


def batch(count, centers):
    y = torch.randint(len(centers), (count,))
    return centers[y] + 0.5 * torch.randn(count, centers.shape[1]), y


def train(path, centers):
    net = Classifier()
    model = torch.compile(net, backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(120):
        x, y = batch(64, centers)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")
    torch.save({"model": net.state_dict(), "steps": step + 1}, path)


def main():
    torch.manual_seed(215)
    centers = torch.randn(4, 12)
    train("classifier.pt", centers)
    service = Service("classifier.pt")
    x, y = batch(500, centers)
    print(f"accuracy of the service {(service.answer(x) == y).float().mean():.2%}")


if __name__ == "__main__":
    main()
