"""Self-supervised pretraining on augmented vectors."""

import random
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

settings = SimpleNamespace(seed=168, epochs=8, steps=15, batch=40, lr=3e-3, temperature=0.3)


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)  # bug: TA614 (runtime)


class Projector(nn.Module):
    def __init__(self, dim=16, out=8):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(dim, 48), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(48, out)

    def forward(self, x):
        return F.normalize(self.head(self.body(x)), dim=1)


def augment(x):
    scale = 0.8 + 0.4 * random.random()
    keep = torch.rand_like(x) > 0.2
    return scale * x * keep + 0.2 * torch.randn_like(x)


def contrast(first, second, temperature):
    return F.cross_entropy(first @ second.T / temperature, torch.arange(len(first)))


def run_epoch(model, optimizer, corpus, settings):
    total = 0.0
    for _ in range(settings.steps):
        x = corpus[torch.randint(len(corpus), (settings.batch,))]
        loss = contrast(model(augment(x)), model(augment(x)), settings.temperature)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / settings.steps


def main(settings):
    seed_everything(settings.seed)
    corpus = torch.randn(2000, 16)
    model = Projector()
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr)
    for epoch in range(settings.epochs):
        seed_everything(settings.seed)  # bug: TA614
        print(f"epoch {epoch}: {run_epoch(model, optimizer, corpus, settings):.4f}")


if __name__ == "__main__":
    main(settings)
