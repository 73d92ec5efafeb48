"""A residual CNN for small images, built in a loop."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return x + torch.relu(self.norm(self.conv(x)))


class SmallResNet(nn.Module):
    def __init__(self, channels=8, depth=4, classes=3):
        super().__init__()
        self.stem = nn.Conv2d(1, channels, 3, padding=1)
        self.blocks = nn.ModuleList()
        for _ in range(depth):
            block = Block(channels)
            self.blocks.append(block)
        self.head = nn.Linear(channels, classes)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x.amax(dim=(2, 3)))


def marks(count, size=10):
    labels = torch.randint(3, (count,))
    images = 0.4 * torch.randn(count, 1, size, size)
    for image, label in zip(images, labels.tolist()):
        row, column = torch.randint(1, size - 1, (2,)).tolist()
        if label != 1:
            image[0, row - 1 : row + 2, column] += 2.0
        if label != 0:
            image[0, row, column - 1 : column + 2] += 2.0
    return TensorDataset(images, labels)


def main():
    torch.manual_seed(52)
    loader = DataLoader(marks(960), batch_size=32, shuffle=True, drop_last=True)
    model = SmallResNet()
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{len(model.blocks)} blocks, {parameters} parameters")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(3):
        total = 0.0
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.3f}")


if __name__ == "__main__":
    main()
