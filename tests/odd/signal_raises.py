# A timer raises the user's exception wherever the loop happens to be.
import signal

import torch
from torch import nn


class Timeout(Exception):
    pass


def handler(number, frame):
    raise Timeout


signal.signal(signal.SIGVTALRM, handler)
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step():
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()


for _ in range(20):  # what is imported on the way is imported
    step()
caught = 0
for _ in range(60):
    try:
        signal.setitimer(
            signal.ITIMER_VIRTUAL, 0.004
        )  # of the time of this process, however busy the machine is
        for _ in range(2000):
            step()
    except Timeout:
        caught += 1
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        torch.set_grad_enabled(True)  # torch leaves it off where the timer cuts its own `no_grad`
print("nearly all were caught", caught > 50)  # torch itself loses one now and then
