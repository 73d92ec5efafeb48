"""Data-parallel training of a model with a method of its own."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self, model):
        self.model = DistributedDataParallel(model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    trainer = Trainer(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1)))
    torch.manual_seed(dist.get_rank())
    for _ in range(15):
        x = torch.randn(16, 6)
        loss = trainer.step(x, x[:, :1])
    print(dist.get_rank(), loss)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
