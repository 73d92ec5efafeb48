"""A variational autoencoder of small drawings, each a bar somewhere."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SIDE = 12


class VAE(nn.Module):
    def __init__(self, width=64, code=20):
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, width), nn.ReLU())
        self.mean, self.spread = nn.Linear(width, code), nn.Linear(width, code)
        self.decoder = nn.Sequential(nn.Linear(code, width), nn.ReLU(), nn.Linear(width, SIDE * SIDE))

    def forward(self, x):
        hidden = self.encoder(x)
        mean, log_var = self.mean(hidden), self.spread(hidden)
        code = mean + torch.randn_like(mean) * (log_var / 2).exp()
        return self.decoder(code).view_as(x), mean, log_var


def drawings(count):
    images = torch.zeros(count, SIDE, SIDE)
    for image, row in zip(images, torch.randint(SIDE - 1, (count,)).tolist(), strict=True):
        image[row : row + 2] = 1
    return TensorDataset(images)


def elbo(out, x, mean, log_var):
    reconstruction = F.binary_cross_entropy_with_logits(out, x, reduction="sum")
    divergence = -0.5 * torch.sum(1 + log_var - mean.pow(2) - log_var.exp())
    return (reconstruction + divergence) / len(x)


def main():
    torch.manual_seed(525)
    loader = DataLoader(drawings(1024), batch_size=128, shuffle=True)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(8):
        for (x,) in loader:
            optimizer.zero_grad()
            loss = elbo(*reversed_pair(model(x), x))
            loss.backward()
            optimizer.step()
        print(epoch, round(loss.item(), 3))


def reversed_pair(outputs, x):
    out, mean, log_var = outputs
    return out, x, mean, log_var


if __name__ == "__main__":
    main()
