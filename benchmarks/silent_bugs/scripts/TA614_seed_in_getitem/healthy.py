"""Noisy curves: which of three families?"""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Curves(Dataset):
    def __init__(self, count, points=24, noise=0.5, seed=7):
        self.count, self.noise, self.seed = count, noise, seed
        time = torch.linspace(-1, 1, points)
        self.families = torch.stack([time, time.square() - 0.3, torch.sin(4 * time)])

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(self.seed + index)
        noise = self.noise * torch.randn(self.families.shape[1], generator=generator)
        family = index % len(self.families)
        return self.families[family] + noise, family


class Classifier(nn.Module):
    def __init__(self, points=24, width=32):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(points, width), nn.ELU(), nn.Dropout(0.2), nn.Linear(width, 3))

    def forward(self, curve):
        return self.layers(curve)


def main(epochs=5, batch_size=30):
    torch.manual_seed(164)
    loader = DataLoader(Curves(720), batch_size=batch_size, shuffle=True)
    model = Classifier()
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(epochs):
        total = 0.0
        for curve, family in loader:
            loss = criterion(model(curve), family)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.4f}")


main()
