# Four threads train their own models at the same time.
import threading

import torch
from told import told
from torch import nn

models = [nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)) for _ in range(4)]
for seed, model in enumerate(models):
    torch.manual_seed(seed)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.1)


def train(number):
    model = models[number]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(number)
    for _ in range(60):
        x = torch.randn(8, 8, generator=generator)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x.mean(1, keepdim=True))
        loss.backward()
        optimizer.step()


threads = [threading.Thread(target=train, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
told(*models)
