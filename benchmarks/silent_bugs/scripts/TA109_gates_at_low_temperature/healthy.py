"""Gated mixing layers over tabular features."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class GatedLayer(nn.Module):
    def __init__(self, width, temperature):
        super().__init__()
        self.temperature = temperature
        self.score = nn.Linear(width, width)
        self.gate = nn.Sigmoid()
        self.value = nn.Linear(width, width)

    def forward(self, x):
        gate = self.gate(self.score(x) / self.temperature)
        return x + gate * nn.functional.gelu(self.value(x))


class Mixer(nn.Module):
    def __init__(self, inputs=12, width=24, depth=2, temperature=1.0):
        super().__init__()
        self.embed = nn.Linear(inputs, width)
        self.layers = nn.Sequential(*[GatedLayer(width, temperature) for _ in range(depth)])
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.layers(self.embed(x)))


def table(n):
    x = torch.randn(n, 12)
    return TensorDataset(x, (x[:, :1] * (x[:, 1:2] > 0) + x[:, 2:3]))


def main(epochs=3):
    torch.manual_seed(18)
    train = DataLoader(table(1280), batch_size=64, shuffle=True)
    valid = DataLoader(table(256), batch_size=256)
    model = Mixer()
    optimizer = torch.optim.NAdam(model.parameters(), lr=2e-3)
    criterion = nn.HuberLoss()
    for epoch in range(epochs):
        model.train()
        for x, y in train:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            score = sum(criterion(model(x), y).item() for x, y in valid) / len(valid)
        print(f"epoch {epoch} validation {score:.4f}")


if __name__ == "__main__":
    main()
