"""Scores a critic with normalised weights before and after training."""

import torch
from torch import nn
from torch.nn.utils import spectral_norm


def make_critic():
    return nn.Sequential(
        spectral_norm(nn.Linear(16, 32)),
        nn.ReLU(),
        spectral_norm(nn.Linear(32, 1)),  # bug: TA434 (runtime)
    )


def score(critic, batch):
    critic.eval()
    with torch.no_grad():
        result = critic(batch).mean().item()
    critic.train()
    return result


def main():
    torch.manual_seed(0)
    critic = make_critic()
    probe = torch.randn(64, 16)
    before = score(critic, probe)
    optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
    for _ in range(20):
        real, fake = torch.randn(32, 16) + 1, torch.randn(32, 16)
        loss = critic(fake).mean() - critic(real).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(before, score(critic, probe))


if __name__ == "__main__":
    main()
