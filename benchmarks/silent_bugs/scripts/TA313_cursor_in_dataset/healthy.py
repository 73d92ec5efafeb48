"""Predicts the drag of shapes from a table that a simulation wrote."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Simulations(Dataset):
    def __init__(self, rows, generator):
        self.shapes = torch.rand(rows, 9, generator=generator) - 0.5
        self.drag = self.shapes[:, 0].square() + self.shapes[:, 1:4].prod(1) + self.shapes[:, 4]

    def __len__(self):
        return len(self.shapes)

    def __getitem__(self, index):
        return self.shapes[index], self.drag[index]


class Drag(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(9, hidden), nn.Linear(hidden, hidden)])
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        for layer in self.layers:
            x = nn.functional.elu(layer(x))
        return self.out(x).squeeze(-1)


def epoch_of(model, loader, optimizer):
    total = 0.0
    for shapes, drag in loader:
        loss = nn.functional.huber_loss(model(shapes), drag)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def main():
    torch.manual_seed(51)
    data = Simulations(1280, torch.Generator().manual_seed(51))
    loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=2)
    model = Drag()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        print("epoch", epoch, "loss", epoch_of(model, loader, optimizer))


if __name__ == "__main__":
    main()
