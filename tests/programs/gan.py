"""A generator and a discriminator, each with an optimizer of its own, and samples drawn after each epoch."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Generator(nn.Module):
    def __init__(self, noise=8):
        super().__init__()
        self.noise = noise
        self.main = nn.Sequential(
            nn.Linear(noise, 32, bias=False), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh()
        )

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(0.2), nn.Dropout(0.2), nn.Linear(32, 1))

    def forward(self, x):
        return self.main(x)


def main(seed=0, batch_size=16):
    torch.manual_seed(seed)
    real_data = torch.tanh(torch.randn(150, 1) + 0.2 * torch.randn(150, 16))
    loader = DataLoader(TensorDataset(real_data), batch_size=batch_size, shuffle=True)
    generator, discriminator = Generator(), Discriminator()
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()
    fixed = torch.randn(4, generator.noise)
    for _epoch in range(3):
        for (real,) in loader:
            ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
            fake = generator(torch.randn(len(real), generator.noise))

            optimizer_d.zero_grad()
            loss_d = criterion(discriminator(real), ones) + criterion(discriminator(fake.detach()), zeros)
            loss_d.backward()
            optimizer_d.step()

            optimizer_g.zero_grad()
            loss_g = criterion(discriminator(fake), ones)
            loss_g.backward()
            optimizer_g.step()
        generator.eval()
        with torch.no_grad():
            print(generator(fixed).std().item())
        generator.train()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
