# The script has no descriptor left to open.
import atexit
import resource

import torch
import torch._dynamo.utils
from told import told
from torch import nn

atexit.unregister(torch._dynamo.utils.dump_compile_times)  # it looks for a module, and may need one
torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
limit = resource.getrlimit(resource.RLIMIT_NOFILE)
for step in range(6):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
    if step == 2:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limit[1]))
told(model)
