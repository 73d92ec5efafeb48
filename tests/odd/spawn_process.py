# real
# A spawned process trains and hands its weights back.
import torch
import torch.multiprocessing as mp
from told import told
from torch import nn


def train(rank, results):
    torch.manual_seed(rank)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()
    results.copy_(model.weight.detach()[0])


if __name__ == "__main__":
    results = torch.zeros(4).share_memory_()
    mp.spawn(train, args=(results,), nprocs=1)
    told(results)
