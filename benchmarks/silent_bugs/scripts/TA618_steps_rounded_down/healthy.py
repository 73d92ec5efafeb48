"""Bagged linear experts, with an explicit budget of steps."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_plan(samples, batch_size, epochs):
    steps = math.ceil(samples / batch_size)
    return {"batch_size": batch_size, "epochs": epochs, "steps_per_epoch": steps, "total": steps * epochs}


class Experts(nn.Module):
    def __init__(self, features, experts=4):
        super().__init__()
        self.router = nn.Linear(features, experts)
        self.experts = nn.Linear(features, experts)

    def forward(self, x):
        return (self.router(x).softmax(1) * self.experts(x)).sum(1, keepdim=True)


def piecewise(count):
    x = torch.randn(count, 4)
    y = torch.where(x[:, :1] > 0, x[:, 1:2], -x[:, 2:3]) + 0.1 * torch.randn(count, 1)
    return TensorDataset(x, y)


def train(model, loader, plan, optimizer):
    for epoch in range(plan["epochs"]):
        batches, total = iter(loader), 0.0
        for _ in range(plan["steps_per_epoch"]):
            x, y = next(batches)
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / plan['steps_per_epoch']:.4f}")


def main():
    torch.manual_seed(195)
    data = piecewise(1010)
    plan = make_plan(len(data), batch_size=60, epochs=8)
    loader = DataLoader(data, batch_size=plan["batch_size"], shuffle=True)
    model = Experts(4)
    train(model, loader, plan, torch.optim.Adam(model.parameters(), lr=1e-2))


main()
