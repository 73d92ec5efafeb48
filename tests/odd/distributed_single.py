# A process group of one, collectives and an object gather.
import torch
import torch.distributed as dist
from told import told
from torch import nn

torch.manual_seed(0)
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad, op=dist.ReduceOp.SUM)
    optimizer.step()
objects = [None]
dist.all_gather_object(objects, {"a": 1})
print(objects, dist.isend.__name__, dist.all_reduce.__name__)
dist.destroy_process_group()
told(model)
