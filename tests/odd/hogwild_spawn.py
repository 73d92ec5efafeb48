# real
# Hogwild with one spawned process, which ends with a status of its own.
import sys

import torch
import torch.multiprocessing as mp
from told import told
from torch import nn


def train(model):
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()
    sys.exit(5)


if __name__ == "__main__":
    torch.manual_seed(9)
    model = nn.Linear(4, 1).share_memory()
    process = mp.get_context("spawn").Process(target=train, args=(model,))
    process.start()
    process.join()
    print(process.exitcode)
    told(model)
