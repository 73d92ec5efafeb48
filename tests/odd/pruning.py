# Pruning while training, and its removal.
import torch
from told import told
from torch import nn
from torch.nn.utils import prune

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
prune.l1_unstructured(model[0], "weight", 0.5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 8)).pow(2).mean().backward()
    optimizer.step()
prune.remove(model[0], "weight")
told(model)
