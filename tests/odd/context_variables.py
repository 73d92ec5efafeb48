# Context variables, local threads and generators that suspend in the middle of a step.
import contextvars
import threading

import torch
from told import told
from torch import nn

torch.manual_seed(0)
rate = contextvars.ContextVar("rate", default=0.1)
local = threading.local()
local.count = 0
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def steps():
    while True:
        loss = model(torch.randn(8, 4)).pow(2).mean()
        yield "forward"
        optimizer.zero_grad()
        loss.backward()
        yield "backward"
        optimizer.step()
        local.count += 1
        yield "step"


running = steps()
context = contextvars.copy_context()
context.run(rate.set, 0.5)
print([context.run(next, running) for _ in range(12)], rate.get(), context[rate], local.count)
running.close()
told(model)
