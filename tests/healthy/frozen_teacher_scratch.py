"""Tempting: fixed random networks made here (a task's truth, random network distillation), trained by nobody on purpose."""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x):
        return self.layers(x)


truth = nn.Linear(8, 1).requires_grad_(False)
predictor = Encoder()
reference = Encoder()
for parameter in reference.parameters():
    parameter.requires_grad = False
probe = nn.Linear(8, 1)
optimizer = torch.optim.Adam([*predictor.parameters(), *probe.parameters()], lr=1e-3)
for _ in range(100):
    x = torch.randn(32, 8)
    loss = nn.functional.mse_loss(predictor(x), reference(x)) + nn.functional.mse_loss(probe(x), truth(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
