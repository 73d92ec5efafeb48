# real
# What the script knows of itself: __file__, __name__, sys.path, sys.modules, sys.flags.
import inspect
import os
import sys

import torch
from told import told
from torch import nn

print(
    os.path.basename(__file__),
    __name__,
    os.path.basename(sys.path[0]),
    __spec__,
    __package__,
    sys.modules["__main__"].__dict__ is globals(),
    os.path.basename(sys.argv[0]),
    sorted(name for name in globals() if name.startswith("__")),
    sys.flags.interactive,
    sys.dont_write_bytecode,
    type(__loader__).__name__,
)
print(
    inspect.getsourcefile(inspect.currentframe()) == __file__,
    inspect.currentframe().f_code.co_name,
    sys.stdout.name,
    sys.stderr.name,
    sys.stdin.closed,
)
torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
told(model)
