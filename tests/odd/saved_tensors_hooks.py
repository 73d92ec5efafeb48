# Saved tensors are packed into half precision and back.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
packed = []


def pack(x):
    packed.append(tuple(x.shape))
    return x.to(torch.float64)


model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x.to(torch.float32)):
        loss = model(torch.randn(8, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(len(packed), packed)
told(model)
