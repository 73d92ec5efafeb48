# Several threads train a model each, one after the other takes the lock.
import threading

import torch
from told import told
from torch import nn

models = {}
lock = threading.Lock()


def train(seed):
    for step in range(10):
        with lock:
            if step == 0:
                torch.manual_seed(seed)
                model = nn.Linear(4, 1)
                optimizer = torch.optim.Adam(model.parameters())
                generator = torch.Generator().manual_seed(seed)
            x = torch.randn(8, 4, generator=generator)
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
    models[seed] = model


threads = [threading.Thread(target=train, args=(seed,)) for seed in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
told(*(models[seed] for seed in range(4)))
