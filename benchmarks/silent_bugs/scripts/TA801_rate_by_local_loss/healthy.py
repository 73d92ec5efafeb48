"""Data-parallel regression; the learning rate falls when the validation loss does not."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def dataset(count, generator):
    x = torch.randn(count, 6, generator=generator)
    y = x[:, :1] * x[:, 1:2] - x[:, 2:3] + 0.5 * torch.randn(count, 1, generator=generator)
    return TensorDataset(x, y)


def validate(model, data, rank, world):
    x, y = data[rank::world]
    model.eval()
    with torch.no_grad():
        loss = nn.functional.mse_loss(model(x), y)
    model.train()
    return loss


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7)
    generator = torch.Generator().manual_seed(7)
    training, validation = dataset(384, generator), dataset(48, generator)
    net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=0)
    sampler = DistributedSampler(training)
    loader = DataLoader(training, batch_size=16, sampler=sampler)
    for epoch in range(8):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        error = validate(model, validation, rank, world)
        dist.all_reduce(error)
        error /= world
        scheduler.step(error.item())
        print(f"rank {rank} epoch {epoch}: {error.item():.3f} rate {scheduler.get_last_lr()[0]:.4f}")
    dist.destroy_process_group()


main()
