# Hogwild, in turns: forked processes train the same weights in shared memory.
import torch
import torch.multiprocessing as mp
from told import told
from torch import nn


def train(model, seed):
    torch.manual_seed(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()


if __name__ == "__main__":
    torch.manual_seed(9)
    torch.set_num_threads(1)
    model = nn.Linear(4, 1).share_memory()
    for seed in range(3):
        process = mp.get_context("fork").Process(target=train, args=(model, seed))
        process.start()
        process.join()
        print(process.exitcode)
    told(model)
