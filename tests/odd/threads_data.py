# A thread prepares batches, the main thread trains.
import queue
import threading

import torch
from told import told
from torch import nn

torch.manual_seed(0)
batches = queue.Queue(2)


def produce():
    generator = torch.Generator().manual_seed(1)
    for _ in range(12):
        x = torch.randn(8, 4, generator=generator)
        batches.put((x, x.exp().sum(1, keepdim=True).log()))
    batches.put(None)


threading.Thread(target=produce, daemon=True).start()
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while (batch := batches.get()) is not None:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(batch[0]), batch[1])
    loss.backward()
    optimizer.step()
told(model, loss)
