"""Keeps an exponential moving average of the weights."""

import torch
from torch import nn


class Average:
    def __init__(self, model):
        self.model = model
        self.shadow = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}

    def update(self, decay=0.99):
        for name, parameter in self.model.named_parameters():
            self.shadow[name] = decay * self.shadow[name] + (1 - decay) * parameter.detach()


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
    average = Average(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(40):
        x = torch.randn(32, 6)
        loss = nn.functional.mse_loss(model(x), x.mean(dim=1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update()
    print(loss.item())


if __name__ == "__main__":
    main()
