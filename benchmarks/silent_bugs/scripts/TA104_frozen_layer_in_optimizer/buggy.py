"""Adapts batch normalisation to a new domain."""

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Linear(10, 24, bias=False)
        self.bn = nn.BatchNorm1d(24)
        self.fc = nn.Linear(24, 3)

    def forward(self, x):
        return self.fc(torch.relu(self.bn(self.features(x))))


def main():
    torch.manual_seed(0)
    model = Classifier()  # bug: TA432 (runtime)
    for name, parameter in model.named_parameters():
        parameter.requires_grad = name.startswith("bn")
    optimizer = torch.optim.Adam(model.fc.parameters(), lr=1e-3)
    for _ in range(25):
        x = 2 * torch.randn(32, 10) + 1
        y = x[:, :3].argmax(dim=1)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()  # bug: TA104 (runtime)
    print(loss.item())


if __name__ == "__main__":
    main()
