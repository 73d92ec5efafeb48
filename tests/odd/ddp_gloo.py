# real
# DDP with gloo in two forked processes.
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from told import told
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(rank, port, results):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.manual_seed(rank)
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        optimizer.zero_grad()
        if step % 2:
            with model.no_sync():
                model(torch.randn(8, 4)).pow(2).mean().backward()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()
    total = torch.tensor([float(rank)])
    dist.all_reduce(total)
    results[rank] = torch.cat([model.module.weight.detach()[0], total])
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    results = torch.zeros(2, 5).share_memory_()
    mp.start_processes(train, args=(port, results), nprocs=2, start_method="fork")
    told(results)
