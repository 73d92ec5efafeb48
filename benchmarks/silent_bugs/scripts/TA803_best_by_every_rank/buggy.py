"""Data-parallel training that keeps the best state."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class BestKeeper:
    def __init__(self, path, rank):
        self.path, self.rank, self.best = path, rank, float("inf")

    def offer(self, value, model, optimizer):
        if value >= self.best:
            return
        self.best = value
        content = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "value": value}
        torch.save(content, self.path)  # bug: TA803


def points(count, seed):
    generator = torch.Generator().manual_seed(seed)
    x = 2 * torch.rand(count, 2, generator=generator) - 1
    return TensorDataset(x, (x.norm(dim=1, keepdim=True) < 0.75).float())


def epoch_loss(model, loader, optimizer):
    total = torch.zeros(())
    for x, y in loader:
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    dist.all_reduce(total)
    return total.item() / len(loader) / dist.get_world_size()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(15)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(2, 24), nn.ReLU(), nn.Linear(24, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    data = points(1024, seed=15)
    sampler = DistributedSampler(data, seed=15)
    loader = DataLoader(data, batch_size=32, sampler=sampler)
    keeper = BestKeeper("best.pt", rank)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        value = epoch_loss(model, loader, optimizer)
        keeper.offer(value, model, optimizer)
        if rank == 0:
            print(f"epoch {epoch}: {value:.4f} best {keeper.best:.4f}")
    dist.destroy_process_group()


main()
