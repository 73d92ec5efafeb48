# In-place operations, views, version counters and out arguments.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
room = torch.empty(8, 4)
average = [each.detach().clone() for each in model.parameters()]
for _ in range(6):
    x = torch.randn(8, 4)
    out = model(x)
    out[:, 0].mul_(2)
    out.add_(1).exp_()
    part = out[:, 1:3]
    part *= 0.5
    torch.exp(x, out=room)
    torch.mul(x, 2, out=room)
    torch.pow(room, 2, out=room)
    optimizer.zero_grad()
    (out * room).mean().backward()
    optimizer.step()
    torch._foreach_lerp_(average, [each.detach() for each in model.parameters()], 0.1)
print(out._version, room._version, model.weight._version)
told(model, room, average)
