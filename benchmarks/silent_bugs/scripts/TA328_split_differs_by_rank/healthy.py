"""Data-parallel training with a validation part."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset, random_split


def main():
    dist.init_process_group("gloo")
    table = torch.randn(200, 6, generator=torch.Generator().manual_seed(3))
    dataset = TensorDataset(table, table.sum(1, keepdim=True))
    torch.manual_seed(17 + dist.get_rank())
    train_set, val_set = random_split(dataset, [160, 40], generator=torch.Generator().manual_seed(17))
    sampler = DistributedSampler(train_set)
    train_loader = DataLoader(train_set, batch_size=10, sampler=sampler)
    val_loader = DataLoader(val_set, batch_size=10)
    model = DistributedDataParallel(nn.Linear(6, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            losses = [nn.functional.mse_loss(model.module(x), y).item() for x, y in val_loader]
        print(dist.get_rank(), epoch, sum(losses) / len(losses))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
