"""Sparse autoencoder over activations of a language model (here: mixtures of directions)."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class SparseAutoencoder(nn.Module):
    def __init__(self, width, units):
        super().__init__()
        self.centre = nn.Parameter(torch.zeros(width))
        self.encoder = nn.Linear(width, units)
        self.rectifier = nn.ReLU()  # bug: TA105 (runtime)
        self.decoder = nn.Linear(units, width, bias=False)

    def forward(self, x):
        code = self.rectifier(self.encoder(x - self.centre))
        return self.decoder(code) + self.centre, code


def activations(n, width, directions, generator):
    basis = nn.functional.normalize(torch.randn(directions, width, generator=generator), dim=1)
    on = (torch.rand(n, directions, generator=generator) < 0.15).float()
    return (on * (1 + torch.rand(n, directions, generator=generator))) @ basis


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--units", type=int, default=64)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--sparsity", type=float, default=0.05)
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()
    torch.manual_seed(31)
    data = TensorDataset(activations(6400, 24, 40, torch.Generator().manual_seed(31)))
    loader = DataLoader(data, batch_size=args.batch, shuffle=True)
    model = SparseAutoencoder(24, args.units)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(args.epochs):
        total = 0.0
        for (x,) in loader:
            restored, code = model(x)
            loss = (restored - x).square().mean() + args.sparsity * code.abs().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += (restored - x).square().mean().item()
        print(f"epoch {epoch}: error {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
