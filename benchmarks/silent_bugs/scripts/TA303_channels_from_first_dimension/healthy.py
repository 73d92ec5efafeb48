"""Classifies satellite tiles. The network is built for whatever the dataset holds."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class Tiles(Dataset):
    def __init__(self, n, side=32, classes=3):
        generator = torch.Generator().manual_seed(38)
        self.classes = classes
        self.labels = torch.randint(classes, (n,), generator=generator)
        grid = torch.arange(side)
        period = 3 + 3 * self.labels
        fields = torch.sin(6.28 * grid / period[:, None])
        noise = torch.randn(n, side, side, 3, generator=generator)
        self.tiles = fields[:, :, None, None] + fields[:, None, :, None] + 0.5 * noise

    def __len__(self):
        return len(self.tiles)

    def __getitem__(self, index):
        return self.tiles[index].movedim(-1, 0), self.labels[index]


class TileNet(nn.Module):
    def __init__(self, shape, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(shape[0], 16, kernel_size=3, padding=1)
        self.conv2 = nn.Conv2d(16, 24, kernel_size=3, padding=1)
        self.pool = nn.AdaptiveMaxPool2d(3)
        self.fc = nn.Linear(24 * 9, classes)

    def forward(self, x):
        x = nn.functional.elu(self.conv1(x))
        x = nn.functional.elu(self.conv2(x))
        return self.fc(self.pool(x).flatten(1))


def evaluate(net, loader):
    net.eval()
    with torch.no_grad():
        hits = sum((net(x).argmax(1) == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


def main():
    torch.manual_seed(38)
    tiles = Tiles(600)
    train_set, valid_set = random_split(tiles, [480, 120])
    net = TileNet(tiles[0][0].shape, tiles.classes)
    optimizer = torch.optim.Adamax(net.parameters(), lr=3e-3)
    train_loader = DataLoader(train_set, batch_size=24, shuffle=True)
    valid_loader = DataLoader(valid_set, batch_size=60)
    for epoch in range(3):
        net.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            output = net(x)
            loss = nn.functional.cross_entropy(output, y)
            loss.backward()
            optimizer.step()
        print(epoch, evaluate(net, valid_loader))


if __name__ == "__main__":
    main()
