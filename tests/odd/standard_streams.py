# sys.stdout is replaced, flushed and closed by the script.
import contextlib
import io
import sys

import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with contextlib.redirect_stdout(io.StringIO()) as text, contextlib.redirect_stderr(io.StringIO()) as errors:
    for step in range(5):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()
        print(step)
print(repr(text.getvalue()))
told(model)
sys.stdout.write("no newline at the end")
sys.stdout.flush()
