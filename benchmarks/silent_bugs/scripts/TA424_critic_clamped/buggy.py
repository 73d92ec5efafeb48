"""Wasserstein GAN: the critic learns alone first, then both, with weights kept in a box."""

import torch
from torch import nn


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1])


class Trainer:
    def __init__(self, latent=3, box=0.2, alone=45):
        self.latent, self.box, self.alone = latent, box, alone
        self.generator = mlp(latent, 24, 24, 2)
        self.critic = mlp(2, 24, 24, 1)
        self.optimizer_g = torch.optim.RMSprop(self.generator.parameters(), lr=1e-3)
        self.optimizer_c = torch.optim.RMSprop(self.critic.parameters(), lr=1e-3)

    def real(self, count):
        side = (torch.rand(count, 1) < 0.5).float() * 2 - 1
        return torch.cat([side, 0.5 * side], dim=1) + 0.2 * torch.randn(count, 2)

    def keep_in_box(self):
        for layer in self.critic:
            if isinstance(layer, nn.Linear):
                layer.weight.clamp_(-self.box, self.box)  # bug: TA424

    def critic_step(self, count):
        fake = self.generator(torch.randn(count, self.latent)).detach()
        gap = self.critic(self.real(count)).mean() - self.critic(fake).mean()
        self.optimizer_c.zero_grad()
        (-gap + 1e-2 * gap.square()).backward()
        self.optimizer_c.step()
        return gap.item()

    def generator_step(self, count):
        score = self.critic(self.generator(torch.randn(count, self.latent))).mean()
        self.optimizer_g.zero_grad()
        (-score).backward()
        self.optimizer_g.step()

    def fit(self, steps, count=64):
        for step in range(steps):
            gap = self.critic_step(count)
            if step >= self.alone:
                self.keep_in_box()
                self.generator_step(count)
            if step % 20 == 0:
                print(f"step {step}: gap {gap:.3f}")


torch.manual_seed(58)
Trainer().fit(120)
