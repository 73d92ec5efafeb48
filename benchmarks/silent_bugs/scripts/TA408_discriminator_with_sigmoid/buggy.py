"""A GAN for points on two arcs."""

import math

import torch
import torch.nn.functional as F
from torch import nn

CONFIG = {"latent": 4, "batch": 64, "steps": 150, "lr": 2e-3, "seed": 9}


class Discriminator(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, width), nn.Linear(width, width)])
        self.judge = nn.Linear(width, 1)

    def forward(self, points):
        for layer in self.layers:
            points = F.leaky_relu(layer(points), 0.2)
        return torch.sigmoid(self.judge(points)).view(-1)


def arcs(count):
    angle = math.pi * torch.rand(count)
    upper = torch.rand(count) < 0.5
    x = torch.where(upper, angle.cos(), 1 - angle.cos()) - 0.5
    y = torch.where(upper, angle.sin(), 0.5 - angle.sin()) - 0.25
    return torch.stack([x, y], dim=1) + 0.05 * torch.randn(count, 2)


def adversarial(verdict, real):
    wanted = torch.full_like(verdict, 1.0 if real else 0.0)
    return F.binary_cross_entropy_with_logits(verdict, wanted)  # bug: TA408


def main(config):
    torch.manual_seed(config["seed"])
    generator = nn.Sequential(
        nn.Linear(config["latent"], 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2)
    )
    critic = Discriminator()
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=config["lr"], betas=(0.5, 0.99))
    optimizer_d = torch.optim.Adam(critic.parameters(), lr=config["lr"], betas=(0.5, 0.99))
    for step in range(config["steps"]):
        real = arcs(config["batch"])
        fake = generator(torch.randn(config["batch"], config["latent"]))

        optimizer_d.zero_grad()
        verdict = critic(real)
        loss_d = adversarial(verdict, True) + adversarial(critic(fake.detach()), False)
        loss_d.backward()
        optimizer_d.step()

        optimizer_g.zero_grad()
        loss_g = adversarial(critic(fake), True)
        loss_g.backward()
        optimizer_g.step()
        if step % 30 == 0:
            trust = verdict.detach().mean().item()
            print(f"{step:4d} d {loss_d.item():.3f} g {loss_g.item():.3f} trust {trust:.2f}")


main(CONFIG)
