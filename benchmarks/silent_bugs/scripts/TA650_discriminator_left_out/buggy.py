"""A small GAN for points on a ring, with gradients of two batches in each step."""

import math

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def ring(count):
    angle = torch.rand(count) * 2 * math.pi
    return torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(count, 2)


def network(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 48), nn.LeakyReLU(0.2), nn.Linear(48, outputs))


def main(epochs=3, noise=8):
    torch.manual_seed(51)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    generator, discriminator = network(noise, 2), network(2, 1)
    g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.99))
    d_optimizer = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.99))
    loader = DataLoader(TensorDataset(ring(2048)), batch_size=64, shuffle=True, drop_last=True)
    generator, discriminator, g_optimizer, loader = accelerator.prepare(
        generator, discriminator, g_optimizer, loader
    )
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        for (real,) in loader:
            with accelerator.accumulate(generator, discriminator):
                fake = generator(torch.randn(len(real), noise, device=real.device))
                of_real, of_fake = discriminator(real), discriminator(fake.detach())
                d_loss = criterion(of_real, torch.ones_like(of_real)) + criterion(
                    of_fake, torch.zeros_like(of_fake)
                )
                accelerator.backward(d_loss)
                d_optimizer.step()  # bug: TA650
                d_optimizer.zero_grad()

                judged = discriminator(fake)
                g_loss = criterion(judged, torch.ones_like(judged))
                accelerator.backward(g_loss, inputs=list(generator.parameters()))
                g_optimizer.step()
                g_optimizer.zero_grad()
        accelerator.print(f"{epoch}: d {d_loss.item():.3f}  g {g_loss.item():.3f}")


main()
