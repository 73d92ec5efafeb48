"""Monocular depth of a tilted plane seen in stripes."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Planes(Dataset):
    def __init__(self, n, size=16, seed=56):
        generator = torch.Generator().manual_seed(seed)
        self.tilt = torch.rand(n, 2, generator=generator) - 0.5
        self.noise = 0.05 * torch.randn(n, size, size, generator=generator)
        self.grid = torch.linspace(-1, 1, size)

    def __len__(self):
        return len(self.tilt)

    def __getitem__(self, index):
        down, right = self.tilt[index]
        depth = 1 + down * self.grid[:, None] + right * self.grid[None, :]
        image = torch.cos(6 * depth) + self.noise[index]
        return {"image": image[None], "depth": depth}


class DepthNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.encode = nn.Sequential(
            nn.Conv2d(1, width, 5, padding=2),
            nn.SELU(),
            nn.Conv2d(width, width, 5, padding=2),
            nn.SELU(),
        )
        self.decode = nn.Conv2d(width, 1, 1)

    def forward(self, image):
        return self.decode(self.encode(image))


def run(loader, model, criterion, optimizer=None):
    model.train(optimizer is not None)
    total = 0.0
    with torch.set_grad_enabled(optimizer is not None):
        for sample in loader:
            predicted = model(sample["image"])
            loss = criterion(predicted, sample["depth"])  # bug: TA316 (runtime)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item()
    return total / len(loader)


def main():
    torch.manual_seed(56)
    train_loader = DataLoader(Planes(480), batch_size=12, shuffle=True)
    valid_loader = DataLoader(Planes(48, seed=57), batch_size=12)
    model = DepthNet()
    criterion = nn.L1Loss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(3):
        train_loss = run(train_loader, model, criterion, optimizer)
        print(epoch, train_loss, run(valid_loader, model, criterion))


if __name__ == "__main__":
    main()
