# A signal handler asks the loop to stop.
import os
import signal

import torch
from told import told
from torch import nn

torch.manual_seed(0)
stop = False


def handler(number, frame):
    global stop
    stop = True


signal.signal(signal.SIGUSR1, handler)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(100):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
    if step == 6:
        os.kill(os.getpid(), signal.SIGUSR1)
    if stop:
        break
print(step, signal.getsignal(signal.SIGINT) is signal.default_int_handler, signal.getsignal(signal.SIGTERM))
told(model)
