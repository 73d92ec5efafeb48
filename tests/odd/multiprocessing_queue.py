# A manager, a queue and a pool executor next to the training.
from concurrent.futures import ProcessPoolExecutor

import torch
import torch.multiprocessing as mp
from told import told
from torch import nn


def square(x):
    return x * x


if __name__ == "__main__":
    torch.manual_seed(0)
    context = mp.get_context("fork")
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        for _ in range(4):
            x = pool.submit(square, torch.randn(8, 4)).result()
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
    told(model)
