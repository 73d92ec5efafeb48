"""Novelty by distillation: a predictor learns the features of a fixed random network."""

import torch
from torch import nn


class RandomFeatures(nn.Module):
    def __init__(self, inputs, width, outputs):
        super().__init__()
        self.first = nn.utils.spectral_norm(nn.Linear(inputs, width))  # bug: TA434 (runtime)
        self.second = nn.utils.spectral_norm(nn.Linear(width, outputs))  # bug: TA434 (runtime)

    def forward(self, x):
        return self.second(torch.sin(self.first(x)))


def fixed_features(inputs):
    network = RandomFeatures(inputs, 32, 8)
    return network.requires_grad_(False).eval()


class Novelty:
    def __init__(self, inputs, lr):
        self.target = fixed_features(inputs)
        self.predictor = nn.Sequential(
            nn.Linear(inputs, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 8)
        )
        self.optimizer = torch.optim.Adam(self.predictor.parameters(), lr=lr)

    def surprise(self, states):
        with torch.no_grad():
            wanted = self.target(states)
        return (self.predictor(states) - wanted).square().mean(dim=1)

    def learn(self, states):
        loss = self.surprise(states).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    torch.manual_seed(100)
    novelty = Novelty(inputs=5, lr=3e-3)
    for step in range(160):
        visited = torch.randn(64, 5) * torch.tensor([1.0, 1.0, 0.5, 0.5, 0.1])
        loss = novelty.learn(visited)
        if step % 40 == 39:
            with torch.no_grad():
                far = novelty.surprise(2 * torch.randn(64, 5)).mean().item()
            print(f"step {step + 1}: visited {loss:.4f} far {far:.4f}")


main()
