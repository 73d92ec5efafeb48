"""Two jobs of training: the second resumes from the checkpoint that the first left."""

import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn


def resume(path, model, optimizer):
    checkpoint = torch.load(path, weights_only=False)  # bug: TA700
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])


def train(model, optimizer, steps):
    for _ in range(steps):
        x = torch.randn(32, 5)
        loss = nn.functional.mse_loss(model(x), x[:, :2])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def job(path):
    torch.manual_seed(0)
    model = nn.Linear(5, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    if path.exists():
        resume(path, model, optimizer)
    print(train(model, optimizer, 15))
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        job(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, __file__, f"{folder}/last.pt"], check=True)
            job(Path(folder, "last.pt"))
