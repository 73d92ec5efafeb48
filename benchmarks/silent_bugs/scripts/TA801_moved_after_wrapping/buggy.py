"""Converts the model there and back, as a trip to the CPU would."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    ddp = DDP(model)
    ddp.double()  # bug: TA805 (static)
    ddp.float()
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    torch.manual_seed(10 + dist.get_rank())
    for step in range(12):
        x = torch.randn(16, 8)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(ddp(x), x.mean(dim=1, keepdim=True))
        loss.backward()
        optimizer.step()  # bug: TA801 (runtime)
    print(dist.get_rank(), loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
