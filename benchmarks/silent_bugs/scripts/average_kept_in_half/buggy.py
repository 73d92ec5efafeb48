"""Keeps a slow average of the weights beside the training, to be shipped in half precision."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Average:
    def __init__(self, model, decay):
        self.decay = decay
        self.values = {name: p.detach().to(torch.bfloat16, copy=True) for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model):
        for name, parameter in model.named_parameters():
            kept = self.values[name]
            kept.mul_(self.decay).add_(parameter.to(kept.dtype), alpha=1 - self.decay)  # bug: any

    def ship(self):
        return {name: value.to(torch.bfloat16) for name, value in self.values.items()}


def error(model, weights, x, y):
    weights = {name: value.float() for name, value in weights.items()}
    with torch.no_grad():
        return nn.functional.mse_loss(torch.func.functional_call(model, weights, (x,)), y).item()


def main():
    torch.manual_seed(44)
    x = torch.randn(1800, 5)
    y = x[:, :1].abs() + x[:, 1:2] * x[:, 2:3]
    held_x, held_y = x[1600:], y[1600:]
    loader = DataLoader(TensorDataset(x[:1600], y[:1600]), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(5, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    average = Average(model, decay=0.998)
    for epoch in range(6):
        model.train()
        total = 0.0
        for inputs, targets in loader:
            loss = nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update(model)
            total += loss.item()
        model.eval()
        now = error(model, dict(model.named_parameters()), held_x, held_y)
        print(
            f"epoch {epoch}: {total / len(loader):.4f} model {now:.4f} average {error(model, average.ship(), held_x, held_y):.4f}"
        )


main()
