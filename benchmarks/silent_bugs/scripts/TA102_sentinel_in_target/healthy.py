"""Load forecasting from a live stream of meters, one batch of windows a tick."""

import math

import torch
from torch import nn

CONFIG = {"window": 24, "meters": 16, "ticks": 160, "hidden": 20, "lr": 2e-3, "seed": 5}
MISSING = -9999.0


def stream(config, generator):
    clock = 0
    phase = torch.rand(config["meters"], generator=generator) * 6.28
    while True:
        hours = torch.arange(clock, clock + config["window"] + 1)
        load = torch.sin(2 * math.pi * hours / 24 + phase[:, None])
        load = load + 0.1 * torch.randn(load.shape, generator=generator)
        inputs, target = load[:, :-1, None], load[:, -1].clone()
        if clock in (110, 141):
            target[3] = MISSING
        yield inputs, target
        clock += 1


class Forecaster(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        _, last = self.rnn(x)
        return self.head(last[-1]).squeeze(-1)


def run(config):
    torch.manual_seed(config["seed"])
    generator = torch.Generator().manual_seed(config["seed"])
    model = Forecaster(config["hidden"])
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"], momentum=0.9)
    source = stream(config, generator)
    smooth = 0.0
    for tick in range(config["ticks"]):
        inputs, target = next(source)
        prediction = model(inputs)
        known = target != MISSING
        loss = nn.functional.mse_loss(prediction[known], target[known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        smooth = 0.95 * smooth + 0.05 * loss.item()
        if tick % 40 == 39:
            print(tick + 1, smooth)


run(CONFIG)
