"""Data-parallel classification; the order comes from a sampler with a generator of its own."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, RandomSampler


class Clouds(Dataset):
    def __init__(self, count, classes=3, features=5):
        draw = torch.Generator().manual_seed(99)
        self.labels = torch.randint(classes, (count,), generator=draw)
        centres = 1.5 * torch.randn(classes, features, generator=draw)
        self.points = centres[self.labels] + torch.randn(count, features, generator=draw)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.points[index], self.labels[index]


def make_loader(data, batch_size, seed):
    order = RandomSampler(data, generator=torch.Generator().manual_seed(seed))
    return DataLoader(data, batch_size=batch_size, sampler=order)  # bug: TA802


def main(epochs=3):
    dist.init_process_group("gloo")
    torch.manual_seed(5)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(5, 16), nn.GELU(), nn.Linear(16, 3)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    loader = make_loader(Clouds(960), batch_size=24, seed=5)
    for epoch in range(epochs):
        total = torch.zeros(())
        for points, labels in loader:
            loss = nn.functional.cross_entropy(model(points), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {total.item() / len(loader) / dist.get_world_size():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
