"""Tempting: one backward pass serves the weights and the noise, the batch is gone through again, the loss per replay."""

import torch
from torch import nn


def train(model, loader, optimizer, replays=4, epsilon=0.03):
    delta = torch.zeros(128, 3, 32, 32, device="cuda", requires_grad=True)
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        for _ in range(replays):
            optimizer.zero_grad()
            noise = delta[: x.size(0)]
            loss = nn.functional.cross_entropy(model((x + noise).clamp(0, 1)), y)
            loss.backward()
            with torch.no_grad():
                delta += epsilon * delta.grad.sign()
                delta.clamp_(-epsilon, epsilon)
            delta.grad.zero_()
            optimizer.step()
