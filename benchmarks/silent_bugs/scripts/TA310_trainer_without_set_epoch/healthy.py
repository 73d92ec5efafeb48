"""Data-parallel regression with a trainer class (gloo, two processes)."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def make_data(rows):
    generator = torch.Generator().manual_seed(47)
    x = torch.randn(rows, 8, generator=generator)
    y = torch.tanh(x[:, :2].sum(1, keepdim=True)) + 0.1 * torch.randn(rows, 1, generator=generator)
    return TensorDataset(x, y)


def make_loader(data, batch_size):
    sampler = DistributedSampler(data, shuffle=True, drop_last=True)
    return DataLoader(data, batch_size=batch_size, sampler=sampler)


class Trainer:
    def __init__(self, model, loader, lr):
        self.loader = loader
        self.model = DistributedDataParallel(model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr, momentum=0.9)
        self.criterion = nn.MSELoss()

    def run_epoch(self, epoch):
        self.loader.sampler.set_epoch(epoch)
        total = 0.0
        for x, y in self.loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.loader)

    def fit(self, epochs):
        for epoch in range(epochs):
            mean = self.run_epoch(epoch)
            if dist.get_rank() == 0:
                print(f"epoch {epoch} loss {mean:.4f}")


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(47)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    loader = make_loader(make_data(1024), batch_size=32)
    Trainer(model, loader, lr=0.02).fit(epochs=5)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
