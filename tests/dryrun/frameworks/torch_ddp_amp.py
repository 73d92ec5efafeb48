import os

import torch
import torch.distributed as dist
from torch import nn
from torch.amp import GradScaler, autocast
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def setup():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29555")
    dist.init_process_group("gloo", rank=0, world_size=1)


def train_one_epoch(model, loader, optimizer, scaler, scheduler):
    model.train()
    for x, y in loader:
        optimizer.zero_grad(set_to_none=True)
        with autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    scheduler.step()


def main():
    setup()
    model = torch.compile(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), backend="eager")
    ddp = DDP(model)
    data = TensorDataset(torch.randn(16, 4), torch.randint(0, 2, (16,)))
    sampler = DistributedSampler(data, num_replicas=1, rank=0)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    scaler = GradScaler("cpu", enabled=False)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        train_one_epoch(ddp, loader, optimizer, scaler, scheduler)
    ddp.eval()
    with torch.no_grad():
        ddp.module(torch.zeros(1, 4))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
