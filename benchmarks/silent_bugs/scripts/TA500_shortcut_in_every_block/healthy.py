"""Residual network on coloured blobs."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Blobs(Dataset):
    """Images with a bright spot in one of four quadrants."""

    def __init__(self, size, seed):
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(4, (size,), generator=generator)
        self.images = torch.randn(size, 3, 16, 16, generator=generator) * 0.5
        for image, label in zip(self.images, self.labels):
            row, column = divmod(int(label), 2)
            image[:, row * 8 + 2 : row * 8 + 6, column * 8 + 2 : column * 8 + 6] += 1.5

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


class ResidualBlock(nn.Module):
    def __init__(self, channels_in, channels_out, stride):
        super().__init__()
        self.keeps_shape = stride == 1 and channels_in == channels_out
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels_out)
        self.shortcut = nn.Identity() if self.keeps_shape else nn.Conv2d(channels_in, channels_out, 1, stride)

    def forward(self, x):
        out = F.relu(self.norm1(self.conv1(x)))
        out = self.norm2(self.conv2(out))
        residual = x if self.keeps_shape else self.shortcut(x)
        return F.relu(out + residual)


class SmallResNet(nn.Module):
    def __init__(self, widths=(8, 16), classes=4):
        super().__init__()
        self.stem = nn.Conv2d(3, widths[0], 3, padding=1)
        blocks, previous = [], widths[0]
        for width in widths:
            blocks += [ResidualBlock(previous, width, 2), ResidualBlock(width, width, 1)]
            previous = width
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(previous, classes)

    def forward(self, images):
        return self.head(self.blocks(self.stem(images)).mean((2, 3)))


def main(epochs=3):
    torch.manual_seed(0)
    loader = DataLoader(Blobs(512, seed=1), batch_size=32, shuffle=True)
    model = SmallResNet()
    print(f"{sum(p.numel() for p in model.parameters())} parameters")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(epochs):
        total = 0.0
        for images, labels in loader:
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.3f}")


if __name__ == "__main__":
    main()
