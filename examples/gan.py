"""
python examples/gan.py

A generative adversarial network for eight Gaussian blobs on a circle. The discriminator's step is right and
its loss falls; the generator's has one planted bug, marked on its line, and what looks like "the
discriminator is winning" is a generator that never moved.
Under ten seconds on one CPU core; needs torch alone.
"""

import math

import torch
import torch.nn as nn

torch.manual_seed(0)
steps, batch_size, latent, lr = 1000, 128, 8, 1e-3
angles = torch.arange(8) * (2 * math.pi / 8)
centres = torch.stack([angles.cos(), angles.sin()], dim=1)
spread = 0.1


def real_batch(n):
    return centres[torch.randint(8, (n,))] + spread * torch.randn(n, 2)


def mlp(n_in, n_out, width=64):
    return nn.Sequential(
        nn.Linear(n_in, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, n_out),
    )


@torch.no_grad()
def quality():
    """The share of 2000 samples within three standard deviations of a blob, and how many blobs they reach."""
    distance, nearest = torch.cdist(generator(torch.randn(2000, latent)), centres).min(dim=1)
    good = distance < 3 * spread
    return good.float().mean().item(), nearest[good].unique().numel()


generator, discriminator = mlp(latent, 2), mlp(2, 1)
g_optimizer = torch.optim.Adam(generator.parameters(), lr=lr, betas=(0.5, 0.999))
d_optimizer = torch.optim.Adam(discriminator.parameters(), lr=lr, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(batch_size, 1), torch.zeros(batch_size, 1)

for step in range(steps):
    # discriminator: tell the blobs from the generator's samples
    fake = generator(torch.randn(batch_size, latent))
    d_loss = (bce(discriminator(real_batch(batch_size)), ones) + bce(discriminator(fake.detach()), zeros)) / 2
    d_optimizer.zero_grad()
    d_loss.backward()
    d_optimizer.step()

    # generator: have its samples taken for blobs
    g_loss = bce(discriminator(fake), ones)
    g_loss.backward()
    # the backward pass ran through both networks: start the next step clean
    g_optimizer.zero_grad()  # static: TA601
    g_optimizer.step()

    if step % 100 == 0 or step == steps - 1:
        print(f"step {step:4d}: discriminator loss {d_loss.item():.4f}, generator loss {g_loss.item():.4f}")

share, reached = quality()
print(f"{share:.1%} of the samples lie on a blob; {reached} of 8 blobs reached")
