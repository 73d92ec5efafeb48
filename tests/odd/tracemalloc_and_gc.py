# tracemalloc, a frozen collector, gc callbacks and a debugger's breakpoint hook.
import gc
import sys
import tracemalloc

import torch
from told import told
from torch import nn

torch.manual_seed(0)
tracemalloc.start()
gc.disable()
sys.breakpointhook = lambda *a: print("break")
seen = []
gc.callbacks.append(lambda phase, info: seen.append(phase))
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
    if step == 2:
        breakpoint()
print(gc.isenabled(), tracemalloc.is_tracing(), seen)
told(model)
