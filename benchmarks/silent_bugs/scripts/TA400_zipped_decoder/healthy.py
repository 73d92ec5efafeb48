"""Autoencoder for small images: strided encoder, transposed convolutions with a norm after each."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Decoder(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.ups, self.norms = nn.ModuleList(), nn.ModuleList()
        for inputs, outputs in zip(widths[:-1], widths[1:]):
            self.ups.append(nn.ConvTranspose2d(inputs, outputs, 4, stride=2, padding=1))
            self.norms.append(nn.GroupNorm(2, outputs))
        self.last = nn.Conv2d(widths[-1], 1, 3, padding=1)

    def forward(self, z):
        for up, norm in zip(self.ups, self.norms):
            z = nn.functional.silu(norm(up(z)))
        return self.last(z)


def blobs(count):
    axis = torch.linspace(-1, 1, 16)
    centre = torch.rand(count, 2, 1, 1) - 0.5
    squared = (axis.view(1, -1, 1) - centre[:, 0]) ** 2 + (axis.view(1, 1, -1) - centre[:, 1]) ** 2
    return (torch.exp(-8 * squared).unsqueeze(1) - 0.2) / 0.3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=0.02)
    args = parser.parse_args()
    torch.manual_seed(3)
    encoder = nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.SiLU(), nn.Conv2d(8, 16, 4, 2, 1), nn.SiLU())
    decoder = Decoder([16, 12, 8])
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=args.lr, momentum=0.9)
    loader = DataLoader(TensorDataset(blobs(640)), batch_size=32, shuffle=True, drop_last=True)
    for epoch in range(args.epochs):
        total = 0.0
        for (images,) in loader:
            loss = nn.functional.mse_loss(decoder(encoder(images)), images)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
