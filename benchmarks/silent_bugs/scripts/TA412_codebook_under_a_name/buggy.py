"""Classification by distance to prototypes, which begin at points drawn with NumPy."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Groups(Dataset):
    def __init__(self, count, classes=4, features=6, seed=0):
        rng = np.random.default_rng(seed)
        self.centres = rng.normal(size=(classes, features))
        self.labels = rng.integers(classes, size=count)
        noise = rng.normal(scale=0.8, size=(count, features))
        self.points = torch.from_numpy((self.centres[self.labels] + noise).astype("float32"))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.points[index], int(self.labels[index])


class PrototypeNet(nn.Module):
    def __init__(self, features, classes, seed=1):
        super().__init__()
        self.embed = nn.Linear(features, features)
        start = np.random.default_rng(seed).normal(size=(classes, features))
        prototypes = nn.Parameter(torch.from_numpy(start))
        self.prototypes = prototypes.float()  # bug: TA412

    def forward(self, x):
        difference = self.embed(x).unsqueeze(1) - self.prototypes
        return -difference.square().sum(dim=2) / 2


def main():
    torch.manual_seed(0)
    loader = DataLoader(Groups(1000), batch_size=25, shuffle=True)
    model = PrototypeNet(6, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(4):
        total, hits = 0.0, 0
        for x, labels in loader:
            scores = model(x)
            loss = criterion(scores, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            hits += (scores.detach().argmax(1) == labels).sum().item()
        print(
            f"epoch {epoch}: loss {total / len(loader):.3f}, training accuracy {hits / len(loader.dataset):.3f}"
        )


main()
