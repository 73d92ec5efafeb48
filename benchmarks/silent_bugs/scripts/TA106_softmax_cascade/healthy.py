"""A cascade of soft codebooks that compresses vectors in several stages."""

import torch
import torch.nn.functional as F
from torch import nn


class SoftCodebook(nn.Module):
    """Mixes its codes by their similarity to the input."""

    def __init__(self, width, codes):
        super().__init__()
        self.keys = nn.Parameter(torch.randn(codes, width) / width**0.5)
        self.values = nn.Parameter(torch.randn(codes, width) / width**0.5)

    def forward(self, x):
        return F.softmax(x @ self.keys.t(), dim=1) @ self.values


class Cascade(nn.Module):
    def __init__(self, width, codes, stages):
        super().__init__()
        self.stages = nn.ModuleList()
        for _ in range(stages):
            self.stages.append(SoftCodebook(width, codes))
        self.decoder = nn.Linear(width, width)

    def forward(self, x):
        for stage in self.stages:
            x = x + stage(x)
        return self.decoder(x)


class Experiment:
    def __init__(self, seed=21):
        torch.manual_seed(seed)
        self.model = Cascade(width=16, codes=32, stages=6)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.3, momentum=0.8)
        self.mix = torch.randn(4, 16)

    def step(self):
        x = torch.randn(40, 4) @ self.mix
        loss = F.mse_loss(self.model(x), x)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def run(self, steps):
        for step in range(steps):
            loss = self.step()
            if step % 20 == 0:
                print(f"{step:4d} {loss:.4f}")


Experiment().run(100)
