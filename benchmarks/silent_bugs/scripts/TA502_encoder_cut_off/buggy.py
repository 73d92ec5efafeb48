"""Compress sensor readings to two numbers."""

import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def build(dim, code):
    encoder = nn.Sequential(nn.Linear(dim, 32), nn.ELU(), nn.Linear(32, code))
    decoder = nn.Sequential(nn.Linear(code, 32), nn.ELU(), nn.Linear(32, dim))
    return encoder, decoder


def readings(count, dim):
    angle = torch.rand(count, 1) * 6.283
    radius = 1 + 0.2 * torch.randn(count, 1)
    latent = torch.cat([radius * angle.cos(), radius * angle.sin()], 1)
    return latent @ torch.randn(2, dim) + 0.05 * torch.randn(count, dim)


def train_epoch(encoder, decoder, loader, optimizer):
    losses, spread = [], []
    for (x,) in loader:
        optimizer.zero_grad()
        codes = encoder(x).detach()  # bug: TA502 (runtime)
        spread.append(codes.std(0))
        loss = nn.functional.mse_loss(decoder(codes), x)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses), torch.stack(spread).mean(0)


def main():
    torch.manual_seed(21)
    loader = DataLoader(TensorDataset(readings(960, 10)), batch_size=48, shuffle=True)
    encoder, decoder = build(10, 2)
    optimizer = torch.optim.Adam(itertools.chain(encoder.parameters(), decoder.parameters()), lr=5e-3)
    for epoch in range(6):
        loss, spread = train_epoch(encoder, decoder, loader, optimizer)
        print(f"epoch {epoch}: loss {loss:.4f}, codes {[round(s, 2) for s in spread.tolist()]}")


if __name__ == "__main__":
    main()
