import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset


def held_out(dataset, share):
    order = torch.randperm(len(dataset))
    dist.broadcast(order, src=0)
    cut = int(len(dataset) * (1 - share))
    return Subset(dataset, order[:cut].tolist()), Subset(dataset, order[cut:].tolist())


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train()
    return hits


def main():
    dist.init_process_group("gloo")
    x = torch.randn(240, 8, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(100 * dist.get_rank() + 1)
    train, val = held_out(TensorDataset(x, x[:, :3].argmax(1)), 0.25)
    sampler = DistributedSampler(train, seed=5)
    loader = DataLoader(train, batch_size=15, sampler=sampler)
    val_loader = DataLoader(val, batch_size=30)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 3)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for features, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(features), labels).backward()
            optimizer.step()
        print(dist.get_rank(), epoch, evaluate(model.module, val_loader))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
