"""Texture classification, with a metric that is kept over batches."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset


class Textures(Dataset):
    def __init__(self, count, size=16):
        self.labels = torch.randint(3, (count,))
        step = torch.arange(size) * 1.2
        rows = torch.sin(step)[:, None].expand(size, size)
        patterns = torch.stack([rows, rows.T, rows * rows.T])
        self.images = patterns[self.labels][:, None] + 0.8 * torch.randn(count, 1, size, size)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


class Meter:
    def __init__(self):
        self.right = self.total = 0

    def add(self, logits, labels):
        self.right += (logits.argmax(1) == labels).sum().item()
        self.total += len(labels)

    @property
    def value(self):
        return self.right / self.total


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 12, 3, bias=False),
        nn.BatchNorm2d(12),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(12, 3),
    )


def main(epochs=4):
    torch.manual_seed(150)
    data = Textures(800)
    train_loader = DataLoader(Subset(data, range(640)), batch_size=32, shuffle=True)
    valid_loader = DataLoader(Subset(data, range(640, 800)), batch_size=32)
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for epoch in range(epochs):
        model.train()
        running = 0.0
        for images, labels in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            running += loss.item()

        meter = Meter()
        model.eval()
        with torch.no_grad():
            for images, labels in valid_loader:
                meter.add(model(images), labels)
        print(f"epoch {epoch}: loss {running / len(train_loader):.4f}, accuracy {meter.value:.3f}")


main()
