"""Classifies tones from a folder-like dataset (all samples of a class in a row)."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

CLASSES = ["flute", "horn", "violin", "drum", "bell"]


class Folder(Dataset):
    def __init__(self, per_class, seed):
        generator = torch.Generator().manual_seed(seed)
        self.samples = []
        for label, name in enumerate(CLASSES):
            for _ in range(per_class):
                overtones = torch.rand(16, generator=generator) * 0.8
                overtones[label :: len(CLASSES)] += 0.6
                self.samples.append((overtones - 0.5, label))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


def make_loader(split):
    data = Folder(160, seed=1) if split == "train" else Folder(40, seed=2)
    return DataLoader(data, batch_size=20, shuffle=split == "test")  # bug: TA314


def train_epoch(model, loader, optimizer):
    model.train()
    total = 0.0
    for tones, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(tones), labels)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
    return total / len(loader.dataset)


@torch.no_grad()
def test(model, loader):
    model.eval()
    return sum((model(x).argmax(1) == y).sum().item() for x, y in loader) / len(loader.dataset)


if __name__ == "__main__":
    torch.manual_seed(52)
    model = nn.Sequential(nn.Linear(16, 48), nn.Hardtanh(), nn.Linear(48, len(CLASSES)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    train_loader, test_loader = make_loader("train"), make_loader("test")
    for epoch in range(4):
        loss = train_epoch(model, train_loader, optimizer)
        print(f"epoch {epoch} loss {loss:.3f} accuracy {test(model, test_loader):.3f}")
