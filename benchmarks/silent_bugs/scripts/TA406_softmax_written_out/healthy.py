"""A classifier from scratch: own linear layers, own softmax."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Dense(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) / math.sqrt(inputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


def normalise(scores):
    shifted = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    return shifted / shifted.sum(dim=-1, keepdim=True)


class Network(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.hidden = Dense(2, 32)
        self.out = Dense(32, classes)

    def forward(self, x):
        return self.out(torch.tanh(self.hidden(x)))

    @torch.no_grad()
    def predict(self, x):
        return normalise(self(x)).max(dim=-1)


def rings(count, classes):
    labels = torch.randint(classes, (count,))
    angle = 2 * math.pi * torch.rand(count)
    radius = 0.5 * labels + 0.3 + 0.08 * torch.randn(count)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1), labels


def main(classes=4, epochs=4):
    torch.manual_seed(12)
    loader = DataLoader(TensorDataset(*rings(960, classes)), batch_size=32, shuffle=True)
    x, y = rings(300, classes)
    model = Network(classes)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for epoch in range(epochs):
        total = 0.0
        for inputs, labels in loader:
            loss = criterion(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        confidence, decision = model.predict(x)
        model.train()
        right = (decision == y).float().mean().item()
        print(
            f"{epoch}: loss {total / len(loader):.3f} right {right:.3f} sure {confidence.mean().item():.2f}"
        )


if __name__ == "__main__":
    main()
