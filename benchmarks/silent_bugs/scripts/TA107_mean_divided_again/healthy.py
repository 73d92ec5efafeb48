"""Denoising autoencoder on small pictures, plain SGD."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Stripes(Dataset):
    def __init__(self, n, size=32, seed=0):
        generator = torch.Generator().manual_seed(seed)
        grid = torch.arange(size) / size
        angle = 3.14 * torch.rand(n, 1, 1, generator=generator)
        field = torch.cos(angle) * grid[:, None] + torch.sin(angle) * grid[None, :]
        self.clean = torch.sin(12 * field).unsqueeze(1)
        self.noise = 0.4 * torch.randn(self.clean.shape, generator=generator)

    def __len__(self):
        return len(self.clean)

    def __getitem__(self, index):
        return self.clean[index] + self.noise[index], self.clean[index]


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.inward = nn.Conv2d(1, 8, 5, padding=2)
        self.middle = nn.Conv2d(8, 8, 3, padding=1)
        self.outward = nn.Conv2d(8, 1, 3, padding=1)

    def forward(self, x):
        return self.outward(F.silu(self.middle(F.silu(self.inward(x)))))


def per_pixel(error, batch):
    return error / batch[0].numel() / len(batch)


def main():
    torch.manual_seed(0)
    loader = DataLoader(Stripes(512), batch_size=32, shuffle=True)
    model = Denoiser()
    optimizer = torch.optim.SGD(model.parameters(), lr=2e-3, momentum=0.9)
    for epoch in range(8):
        total = 0.0
        for noisy, clean in loader:
            optimizer.zero_grad()
            loss = per_pixel(F.mse_loss(model(noisy), clean, reduction="sum"), clean)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total / len(loader))


if __name__ == "__main__":
    main()
