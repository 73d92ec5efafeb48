"""A variational autoencoder whose parts learn at rates of their own."""

import torch
import torch.nn.functional as F
from torch import nn

RATES = {"encoder": 2e-3, "decoder": 4e-3, "bridge": 2e-3}


class VAE(nn.Module):
    def __init__(self, inputs=16, width=32, latent=3):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(inputs, width), nn.SiLU())
        self.bridge = nn.Linear(width, 2 * latent)
        self.decoder = nn.Sequential(nn.Linear(latent, width), nn.SiLU(), nn.Linear(width, inputs))

    def forward(self, x):
        mean, log_variance = self.bridge(self.encoder(x)).chunk(2, dim=1)
        z = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        return self.decoder(z), mean, log_variance


def groups(model):
    return [
        {"params": [p for name, p in model.named_parameters() if name.startswith(prefix)], "lr": lr}
        for prefix, lr in RATES.items()
    ]


def negative_bound(x, output, mean, log_variance, beta):
    reconstruction = F.mse_loss(output, x, reduction="none").sum(dim=1)
    divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(dim=1)
    return (reconstruction + beta * divergence).mean()


def main():
    torch.manual_seed(88)
    mixing = torch.randn(3, 16)
    model = VAE()
    optimizer = torch.optim.Adam(groups(model))
    total = 0.0
    for step in range(1, 241):
        x = torch.tanh(torch.randn(48, 3) @ mixing) + 0.05 * torch.randn(48, 16)
        loss = negative_bound(x, *model(x), beta=min(0.2, step / 500))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total += loss.item()
        if step % 60 == 0:
            print(f"step {step}: {total / 60:.3f}")
            total = 0.0


if __name__ == "__main__":
    main()
