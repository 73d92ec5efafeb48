# torch's own FLOP counter around steps.
import torch
from told import told
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

torch.manual_seed(0)
model = nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    with FlopCounterMode(display=False) as counter:
        optimizer.zero_grad()
        model(torch.randn(8, 16)).pow(2).mean().backward()
    optimizer.step()
    print(counter.get_total_flops())
told(model)
