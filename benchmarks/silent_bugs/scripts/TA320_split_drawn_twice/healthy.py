"""Learns to tell which of two readings is larger, and keeps the score of the best epoch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class Readings(Dataset):
    def __init__(self, count):
        self.values = torch.randn(count, 10)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        values = self.values[index]
        label = (values[0] > values[1]).long()
        return values + 0.05 * torch.randn(10), label


def part(dataset, training):
    size = int(0.8 * len(dataset))
    first, second = random_split(
        dataset, [size, len(dataset) - size], generator=torch.Generator().manual_seed(1)
    )
    return first if training else second


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train()
    return hits / len(loader.dataset)


def main():
    torch.manual_seed(0)
    dataset = Readings(400)
    train_loader = DataLoader(part(dataset, True), batch_size=32, shuffle=True)
    val_loader = DataLoader(part(dataset, False), batch_size=32)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    best = 0.0
    for epoch in range(5):
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        best = max(best, accuracy(model, val_loader))
        print(epoch, best)


if __name__ == "__main__":
    main()
