# What is dropped is gone, and finalizers run when it goes.
import gc
import weakref

import torch
from told import told
from torch import nn

gone = []


def train(number):
    torch.manual_seed(number)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        loss = model(torch.randn(8, 4)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    weakref.finalize(model, gone.append, number)
    told(model)


for number in range(4):
    train(number)
    gc.collect()
print(gone)
