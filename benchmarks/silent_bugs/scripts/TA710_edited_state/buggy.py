"""Saves checkpoints through a helper."""

import tempfile
from pathlib import Path

import torch
from torch import nn


def safe_checkpoint(model, path, shards=2):
    state = model.state_dict()
    names = list(state)
    parts = [names[number::shards] for number in range(shards)]
    kept = {}
    for part in parts:
        kept = {name: state[name] for name in part}
    torch.save(kept, path)  # bug: TA710 (runtime)


def main(folder):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(20):
        x = torch.randn(32, 4)
        loss = nn.functional.mse_loss(model(x), x[:, :1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            safe_checkpoint(model, folder / f"step{step}.pt")
    print(sorted(torch.load(folder / "step19.pt")))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        main(Path(made))
