"""Hinge GAN on a ring; the scores before training are logged for comparison."""

import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm


def ring(count):
    angle = 6.2832 * torch.rand(count)
    return torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(count, 2)


class Critic(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        sizes = [2, width, width, 1]
        self.layers = nn.ModuleList(spectral_norm(nn.Linear(a, b)) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = nn.functional.leaky_relu(layer(x), 0.1)
        return self.layers[-1](x)


@torch.no_grad()
def scores(critic, generator, count=128):
    critic.eval()
    generator.eval()
    real = critic(ring(count)).mean().item()
    fake = critic(generator(torch.randn(count, 4))).mean().item()
    critic.train()
    generator.train()
    return f"real {real:+.3f} generated {fake:+.3f}"


def main():
    torch.manual_seed(97)
    generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
    critic = Critic()
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
    optimizer_c = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.0, 0.9))
    print("before:", scores(critic, generator))
    for step in range(120):
        real, fake = ring(64), generator(torch.randn(64, 4))
        loss_c = torch.relu(1 - critic(real)).mean() + torch.relu(1 + critic(fake.detach())).mean()
        optimizer_c.zero_grad()
        loss_c.backward()
        optimizer_c.step()
        loss_g = -critic(fake).mean()
        optimizer_g.zero_grad()
        loss_g.backward()
        optimizer_g.step()
        if step % 40 == 39:
            print(f"step {step + 1}:", scores(critic, generator))


main()
