"""Saves at the end of a data-parallel training."""

import shutil
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

FOLDER = Path("checkpoints")


def train(model, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        x = torch.randn(16, 6)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x[:, :1])
        loss.backward()
        optimizer.step()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    model = DistributedDataParallel(nn.Linear(6, 1))
    train(model, 12)
    FOLDER.mkdir(exist_ok=True)
    torch.save(model.module.state_dict(), FOLDER / "last.pt")  # bug: TA803
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(FOLDER)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
