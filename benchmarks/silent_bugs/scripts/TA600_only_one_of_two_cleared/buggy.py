"""A GAN on points of a circle."""

import torch
from torch import nn


def real_points(count):
    angle = 6.2832 * torch.rand(count)
    return torch.stack([angle.cos(), angle.sin()], dim=1)


def main():
    torch.manual_seed(0)
    generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
    discriminator = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
    g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3)
    d_optimizer = torch.optim.Adam(discriminator.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)
    for _ in range(40):
        fake = generator(torch.randn(32, 4))
        d_loss = criterion(discriminator(real_points(32)), ones) + criterion(
            discriminator(fake.detach()), zeros
        )
        d_loss.backward()
        d_optimizer.step()  # bug: TA600 (runtime)

        g_optimizer.zero_grad()
        g_loss = criterion(discriminator(fake), ones)
        g_loss.backward()
        g_optimizer.step()
    print(d_loss.item(), g_loss.item())


if __name__ == "__main__":
    main()
