"""Autoregressive model of a step function, trained with warm-up and cosine."""

import torch
from torch import nn
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset


def make_series(count, length=16):
    level = torch.randint(-2, 3, (count, length // 4)).float().repeat_interleave(4, dim=1)
    return level / 2 + 0.1 * torch.randn(count, length)


class CausalConv(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.first = nn.Conv1d(1, width, 5)
        self.second = nn.Conv1d(width, width, 5)
        self.last = nn.Conv1d(width, 1, 1)

    def forward(self, x):
        x = torch.relu(self.first(nn.functional.pad(x, (4, 0))))
        x = torch.relu(self.second(nn.functional.pad(x, (4, 0))))
        return self.last(x)


def make_schedule(optimizer, loader, epochs, warmup_epochs=2):
    warmup = warmup_epochs
    rest = epochs - warmup_epochs
    return lr_scheduler.SequentialLR(
        optimizer,
        [
            lr_scheduler.LinearLR(optimizer, 0.05, total_iters=warmup),
            lr_scheduler.CosineAnnealingLR(optimizer, rest, eta_min=1e-5),
        ],
        milestones=[warmup],
    )


def main(epochs=8):
    torch.manual_seed(119)
    loader = DataLoader(TensorDataset(make_series(768)), batch_size=32, shuffle=True)
    model = CausalConv()
    optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
    schedule = make_schedule(optimizer, loader, epochs)
    for epoch in range(epochs):
        rate, total = optimizer.param_groups[0]["lr"], 0.0
        for (series,) in loader:
            series = series[:, None]
            loss = nn.functional.l1_loss(model(series[..., :-1]), series[..., 1:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        schedule.step()
        print(f"epoch {epoch}: {total / len(loader):.4f} at {rate:.5f}")


main()
