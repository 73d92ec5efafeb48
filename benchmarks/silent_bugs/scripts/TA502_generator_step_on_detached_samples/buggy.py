"""GAN for a ring of points."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Generator(nn.Module):
    def __init__(self, noise, hidden=48):
        super().__init__()
        self.noise = noise
        self.inner = nn.Linear(noise, hidden)
        self.outer = nn.Linear(hidden, 2)

    def forward(self, count):
        return self.outer(F.leaky_relu(self.inner(torch.randn(count, self.noise)), 0.2))


class Discriminator(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.inner = nn.Linear(2, hidden)
        self.outer = nn.Linear(hidden, 1)

    def forward(self, points):
        return self.outer(F.leaky_relu(self.inner(points), 0.2)).flatten()


def ring(count):
    angle = torch.rand(count) * 2 * math.pi
    return torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(count, 2)


class Game:
    def __init__(self, lr=1e-3):
        self.generator, self.discriminator = Generator(6), Discriminator()
        self.g_optimizer = torch.optim.Adam(self.generator.parameters(), lr=lr, betas=(0.5, 0.999))
        self.d_optimizer = torch.optim.Adam(self.discriminator.parameters(), lr=lr, betas=(0.5, 0.999))

    def play(self, real):
        fake = self.generator(len(real)).detach()  # bug: TA502 (runtime)

        self.d_optimizer.zero_grad()
        d_loss = F.softplus(-self.discriminator(real)).mean() + F.softplus(self.discriminator(fake)).mean()
        d_loss.backward()
        self.d_optimizer.step()

        self.g_optimizer.zero_grad()
        g_loss = F.softplus(-self.discriminator(fake)).mean()
        g_loss.backward()
        self.g_optimizer.step()
        return d_loss.item(), g_loss.item()


def main(steps=200, batch=64):
    torch.manual_seed(8)
    game = Game()
    for step in range(steps):
        d_loss, g_loss = game.play(ring(batch))
        if step % 50 == 49:
            print(f"step {step + 1}: discriminator {d_loss:.3f}, generator {g_loss:.3f}")


if __name__ == "__main__":
    main()
