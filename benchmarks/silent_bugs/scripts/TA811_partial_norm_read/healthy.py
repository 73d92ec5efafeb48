"""Logs the gradient norm of a sharded model."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    norms = []
    for _ in range(12):
        x = torch.randn(16, 8)
        loss = nn.functional.mse_loss(model(x), x[:, :2])
        optimizer.zero_grad()
        loss.backward()
        total = 0.0
        for parameter in model.parameters():
            total += parameter.grad.norm().full_tensor().item() ** 2
        norms.append(total**0.5)
        optimizer.step()
    print(dist.get_rank(), norms[-1])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
