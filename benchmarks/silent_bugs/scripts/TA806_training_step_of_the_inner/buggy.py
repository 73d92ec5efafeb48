"""Data-parallel autoencoder whose model computes its own loss."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class AutoEncoder(nn.Module):
    def __init__(self, inputs=12, width=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(inputs, 24), nn.Tanh(), nn.Linear(24, width))
        self.decoder = nn.Sequential(nn.Linear(width, 24), nn.Tanh(), nn.Linear(24, inputs))

    def forward(self, x):
        return self.decoder(self.encoder(x))

    def training_step(self, x):
        noisy = x + 0.1 * torch.randn_like(x)
        return nn.functional.mse_loss(self(noisy), x)  # bug: TA806 (runtime)


class Trainer:
    def __init__(self, model, lr):
        self.model = DistributedDataParallel(model)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            loader.sampler.set_epoch(epoch)
            total = 0.0
            for (x,) in loader:
                loss = self.model.module.training_step(x)  # bug: TA806
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            print(f"rank {dist.get_rank()} epoch {epoch}: {total / len(loader):.4f}")


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(20)
    latent = torch.randn(1024, 3)
    data = TensorDataset(torch.tanh(latent @ torch.randn(3, 12)))
    sampler = DistributedSampler(data)
    torch.manual_seed(20 + dist.get_rank())
    Trainer(AutoEncoder(), lr=5e-3).fit(DataLoader(data, batch_size=32, sampler=sampler), epochs=3)
    dist.destroy_process_group()


main()
