"""A staged CNN whose parts come with an initialisation of their own."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def initialise(module):
    if isinstance(module, (nn.Conv2d, nn.Linear)):
        nn.init.kaiming_normal_(module.weight, mode="fan_in", nonlinearity="relu")  # bug: TA433 (runtime)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


class Unit(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)
        self.apply(initialise)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


class Stage(nn.Module):
    def __init__(self, inputs, outputs, units):
        super().__init__()
        self.units = nn.Sequential(*(Unit(inputs if i == 0 else outputs, outputs) for i in range(units)))
        self.pool = nn.AvgPool2d(2)
        self.apply(initialise)

    def forward(self, x):
        return self.pool(self.units(x))


class StagedNet(nn.Module):
    def __init__(self, widths=(8, 12), classes=2):
        super().__init__()
        inputs = (1, *widths[:-1])
        self.stages = nn.Sequential(*(Stage(a, b, units=2) for a, b in zip(inputs, widths)))
        self.head = nn.Linear(widths[-1], classes)
        self.apply(initialise)

    def forward(self, x):
        return self.head(self.stages(x).mean(dim=(2, 3)))


def samples(count, size=12):
    labels = torch.randint(2, (count,))
    fine = torch.randn(count, 1, size, size)
    coarse = nn.functional.interpolate(torch.randn(count, 1, size // 4, size // 4), scale_factor=4.0)
    return TensorDataset(torch.where(labels.view(-1, 1, 1, 1) == 0, fine, coarse), labels)


def main():
    torch.manual_seed(91)
    loader = DataLoader(samples(640), batch_size=32, shuffle=True, drop_last=True)
    model = StagedNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for epoch in range(3):
        total = 0.0
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.3f}")


main()
