"""Prices of flats by their features; a trainer class of our own around Accelerate."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regressor(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, 64), nn.SiLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.layers(x).squeeze(-1)


class PriceTrainer:
    def __init__(self, model, loader, lr=1e-2, accumulate=4):
        self.accelerator = Accelerator(cpu=True, gradient_accumulation_steps=accumulate)
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        self.model, self.optimizer, self.loader = self.accelerator.prepare(model, optimizer, loader)

    def step(self, features, price):
        with self.accelerator.accumulate(self.model):
            loss = nn.functional.smooth_l1_loss(self.model(features), price)
            loss.backward()  # bug: TA650
            self.optimizer.step()
            self.optimizer.zero_grad()
        return loss.detach()

    def fit(self, epochs):
        for epoch in range(epochs):
            losses = [self.step(features, price) for features, price in self.loader]
            self.accelerator.print(f"epoch {epoch}: {torch.stack(losses).mean():.4f}")


def flats(count=1024):
    features = torch.randn(count, 10)
    price = features[:, :3].sum(1) + 0.5 * features[:, 3] * features[:, 4]
    return TensorDataset(features, price)


if __name__ == "__main__":
    torch.manual_seed(650)
    PriceTrainer(Regressor(10), DataLoader(flats(), batch_size=16, shuffle=True)).fit(4)
