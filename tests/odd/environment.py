# The environment is what it was, and files appear only where the script writes.
import os
import threading

import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
print(
    sorted(key for key in os.environ if key.startswith(("TA_", "TORCH", "PYTHON"))),
    torch.get_num_threads(),
    torch.is_grad_enabled(),
    torch.get_default_dtype(),
    [each.name for each in threading.enumerate()],
    os.umask(0o22) == os.umask(0o22),
)
told(model)
