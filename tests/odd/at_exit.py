# atexit, and a thread that outlives the script.
import atexit
import threading

import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
atexit.register(lambda: told("at exit", model))
atexit.register(print, "first")


def late():
    threading.main_thread().join()
    told("thread", model)


threading.Thread(target=late).start()
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
print("end of script", __name__)
