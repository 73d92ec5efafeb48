# real
# A shell pipeline in the loop.
import subprocess

import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
    print(subprocess.check_output(f"echo {step} | tr 0-9 a-j", shell=True, text=True).strip())
told(model)
