"""Tempting: a norm whose gradient is taken twice, critic steps in an inner loop, weights clamped in place, frozen critic."""

import torch
from torch import nn

G = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 2))
D = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
g_optimizer = torch.optim.Adam(G.parameters(), lr=1e-4, betas=(0.0, 0.9))
d_optimizer = torch.optim.Adam(D.parameters(), lr=1e-4, betas=(0.0, 0.9))


def gradient_penalty(real, fake):
    alpha = torch.rand(real.size(0), 1)
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    out = D(mixed)
    (gradients,) = torch.autograd.grad(
        outputs=out, inputs=mixed, grad_outputs=torch.ones_like(out), create_graph=True, retain_graph=True
    )
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


def infinite(loader):
    while True:
        yield from loader


def train(loader, iterations):
    batches = infinite(loader)
    one = torch.tensor(1.0)
    for iteration in range(iterations):
        for p in D.parameters():
            p.requires_grad = True
        for _ in range(5):
            real = next(batches)
            D.zero_grad()
            D(real).mean().backward(-one)
            fake = G(torch.randn(real.size(0), 16)).detach()
            D(fake).mean().backward(one)
            penalty = 10 * gradient_penalty(real, fake)
            penalty.backward()
            d_optimizer.step()
        for p in D.parameters():
            p.requires_grad = False
        g_optimizer.zero_grad()
        loss = -D(G(torch.randn(64, 16))).mean()
        loss.backward()
        g_optimizer.step()
