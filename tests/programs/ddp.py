"""Data parallelism over two processes: a sampler for each, the mean of the losses of all, and rank 0 saves."""

import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main(seed=0, batch_size=8):
    dist.init_process_group("gloo")
    torch.manual_seed(seed)
    x = torch.randn(150, 8)
    y = (x.sum(dim=1) > 0).long()
    dataset = TensorDataset(x, y)
    sampler = DistributedSampler(dataset, shuffle=True, seed=seed)
    loader = DataLoader(dataset, batch_size=batch_size, sampler=sampler)
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2))
    model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    torch.manual_seed(seed + dist.get_rank())
    for epoch in range(3):
        sampler.set_epoch(epoch)
        model.train()
        total = torch.zeros(1)
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        model.eval()
        with torch.no_grad():
            right = (model.module(x).argmax(dim=1) == y).sum()
        if dist.get_rank() == 0:
            print(epoch, total.item() / dist.get_world_size() / len(loader), right.item())
            with tempfile.TemporaryDirectory() as folder:
                torch.save(model.module.state_dict(), Path(folder) / "last.pt")
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
