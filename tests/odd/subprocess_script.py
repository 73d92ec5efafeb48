# real
# Another Python runs as a program, with an environment and pipes of its own.
import os
import subprocess
import sys

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
code = "import sys, os; print(sorted(key for key in os.environ if key.startswith(('TA_', 'ODD')))); print(len(sys.stdin.read())); print('torch' in sys.modules, sys.argv); sys.exit(3)"
ran = subprocess.run(
    [sys.executable, "-c", code, "word"],
    input="abc",
    capture_output=True,
    text=True,
    env={**os.environ, "ODD": "1"},
)
print(ran.stdout, ran.stderr, ran.returncode)
told(model)
