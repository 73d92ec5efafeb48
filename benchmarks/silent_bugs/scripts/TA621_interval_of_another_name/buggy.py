"""Keypoint regression with a configurable schedule."""

import torch
from torch import nn
from torch.optim.lr_scheduler import LinearLR, SequentialLR
from torch.utils.data import DataLoader, TensorDataset

CONFIG = {
    "epochs": 6,
    "optimizer": {"lr": 0.1, "momentum": 0.9},
    "schedule": {"warmup": 30, "decay": 150, "interval": "batch"},
}


def make_schedule(optimizer, options):
    warmup = LinearLR(optimizer, 0.1, total_iters=options["warmup"])
    decay = LinearLR(optimizer, 1.0, 0.1, total_iters=options["decay"])
    return SequentialLR(optimizer, [warmup, decay], milestones=[options["warmup"]])  # bug: TA621


def polygons(count, corners=5):
    angle = 6.28 * torch.rand(count, 1) + torch.arange(corners) * 6.28 / corners
    points = torch.stack([angle.cos(), angle.sin()], 2)
    visible = points[:, :2] + 0.03 * torch.randn(count, 2, 2)
    return TensorDataset(visible.flatten(1), points[:, 2:].flatten(1))


def train(config):
    loader = DataLoader(polygons(1280), batch_size=40, shuffle=True)
    model = nn.Sequential(nn.Linear(4, 40), nn.Hardswish(), nn.Linear(40, 6))
    optimizer = torch.optim.SGD(model.parameters(), **config["optimizer"])
    schedule = make_schedule(optimizer, config["schedule"])
    interval = config["schedule"]["interval"]
    for epoch in range(config["epochs"]):
        total = 0.0
        for visible, hidden in loader:
            loss = nn.functional.mse_loss(model(visible), hidden)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if interval == "step":
                schedule.step()
            total += loss.item()
        if interval == "epoch":
            schedule.step()
        print(f"epoch {epoch}: {total / len(loader):.4f}, rate {schedule.get_last_lr()[0]:.4f}")


if __name__ == "__main__":
    torch.manual_seed(216)
    train(CONFIG)
