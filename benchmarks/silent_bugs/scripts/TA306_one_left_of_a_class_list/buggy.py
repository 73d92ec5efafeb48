"""Classifies leaves by their veins (synthetic line drawings)."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SPECIES = {"oak": 97, "beech": 96, "birch": 96, "alder": 96}


class Leaves(Dataset):
    def __init__(self, generator):
        self.samples = []
        for label, (name, count) in enumerate(SPECIES.items()):
            for _ in range(count):
                self.samples.append((draw(label, generator), label))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


def draw(label, generator, side=16):
    grid = torch.arange(side).float()
    slope = 0.4 * (label - 1.5)
    veins = torch.sin(1.2 * (grid[:, None] + slope * grid[None, :]))
    return (veins + 0.4 * torch.randn(side, side, generator=generator)).unsqueeze(0)


class LeafNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 12, 5, padding=2, bias=False)
        self.norm = nn.BatchNorm2d(12)
        self.fc = nn.Linear(12, len(SPECIES))

    def forward(self, x):
        x = nn.functional.relu(self.norm(self.conv(x)))
        return self.fc(nn.functional.max_pool2d(x, 16).flatten(1))


def main():
    torch.manual_seed(43)
    generator = torch.Generator().manual_seed(43)
    leaves = Leaves(generator)
    loader = DataLoader(leaves, batch_size=16, shuffle=True)  # bug: TA306 (runtime)
    net = LeafNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(4):
        total = 0.0
        for image, label in loader:
            loss = nn.functional.cross_entropy(net(image), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total / len(loader))


if __name__ == "__main__":
    main()
