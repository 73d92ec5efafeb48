"""Tempting: a loader made anew for each stage, unshuffled on purpose, and an early return once it is good enough."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

x = torch.randn(512, 8)
dataset = TensorDataset(x, x.sum(1, keepdim=True))
order = x.norm(dim=1).argsort().tolist()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.MSELoss()


def fit(stages):
    for stage in range(1, stages + 1):
        easiest = Subset(dataset, order[: len(order) * stage // stages])
        loader = DataLoader(easiest, batch_size=32, shuffle=stage > 1)
        for epoch in range(5):
            running, seen = 0.0, 0
            for inputs, targets in loader:
                optimizer.zero_grad()
                loss = criterion(model(inputs), targets)
                loss.backward()
                optimizer.step()
                running += loss.item() * inputs.size(0)
                seen += inputs.size(0)
            if running / seen < 0.01:
                break
    return model


fit(4)
