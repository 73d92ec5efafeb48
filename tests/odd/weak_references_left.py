# The last model and its tensors are gone after del.
import gc
import weakref

import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
told(model)
watched = [weakref.ref(model), weakref.ref(optimizer), weakref.ref(model.weight), weakref.ref(loss)]
del model, optimizer, loss
gc.collect()
print([each() is None for each in watched])
