# Gradients are accumulated and clipped by value; the last batch is odd.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, x in enumerate(torch.randn(11, 6, 4)):
    (nn.functional.cross_entropy(model(x), (x.sum(1) > 0).long()) / 3).backward()
    if step % 3 == 2 or step == 10:
        nn.utils.clip_grad_value_(model.parameters(), 0.05)
        optimizer.step()
        optimizer.zero_grad(set_to_none=step % 2 == 0)
told(model, torch.rand(2))
