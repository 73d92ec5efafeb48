"""A variational autoencoder for correlated measurements."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class VAE(nn.Module):
    def __init__(self, dim, latent=3, width=32):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(dim, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, 2 * latent)
        )
        self.decoder = nn.Sequential(
            nn.Linear(latent, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, dim)
        )

    def forward(self, x):
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        z = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
        return self.decoder(z), mean, log_variance


def negative_elbo(model, x):
    reconstruction, mean, log_variance = model(x)  # bug: TA612
    kl = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1)
    error = F.mse_loss(reconstruction, x, reduction="none").sum(1)
    return (error + 0.1 * kl).mean()


class Experiment:
    def __init__(self, dim=12):
        mixing = torch.randn(3, dim) / 3**0.5
        self.train_loader = DataLoader(TensorDataset(self.draw(960, mixing)), batch_size=64, shuffle=True)
        self.test_loader = DataLoader(TensorDataset(self.draw(256, mixing)), batch_size=64)
        self.model = VAE(dim)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=4e-3)

    @staticmethod
    def draw(count, mixing):
        return torch.randn(count, 3) @ mixing + 0.1 * torch.randn(count, mixing.shape[1])

    def train(self):
        total = 0.0
        for (x,) in self.train_loader:
            self.optimizer.zero_grad()
            loss = negative_elbo(self.model, x)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.train_loader)

    @torch.inference_mode()
    def test(self):
        return sum(negative_elbo(self.model, x).item() for (x,) in self.test_loader) / len(self.test_loader)


if __name__ == "__main__":
    torch.manual_seed(155)
    experiment = Experiment()
    for epoch in range(6):
        print(f"epoch {epoch}: train {experiment.train():.3f}, test {experiment.test():.3f}")
