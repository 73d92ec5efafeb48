"""Tempting: optimizers in a comprehension and in a dictionary, parameters chained, extended, and stepped by hand."""

import itertools

import torch
from torch import nn
from torch.nn import functional as F

body, neck, head = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)
optimizers = [torch.optim.SGD(module.parameters(), 0.1) for module in (body, neck, head)]
pretrained = nn.Embedding.from_pretrained(torch.randn(10, 3))


def together(batches):
    for x, y in batches:
        loss = F.cross_entropy(head(neck(body(pretrained(x)))), y)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()


def chained(batches):
    first, second, third = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3, bias=False)
    whitening = nn.BatchNorm1d(3, affine=False)
    optimizer = torch.optim.SGD(itertools.chain(*[part.parameters() for part in (first, second)]), 0.1)
    optimizer.add_param_group({"params": third.parameters(), "lr": 0.01})
    for x, y in batches:
        optimizer.zero_grad()
        F.mse_loss(whitening(third(second(first(x)))), y).backward()
        optimizer.step()


def one_by_hand(batches):
    with_optimizer, by_hand = nn.Linear(3, 3), nn.Linear(3, 3)
    optimizer = torch.optim.SGD(with_optimizer.parameters(), 0.1)
    for x, y in batches:
        optimizer.zero_grad()
        by_hand.zero_grad()
        F.mse_loss(by_hand(with_optimizer(x)), y).backward()
        optimizer.step()
        with torch.no_grad():
            for weight in by_hand.parameters():
                weight -= 0.1 * weight.grad
