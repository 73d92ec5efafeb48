"""All nodes of a graph at once: each looks at its neighbours."""

import torch
import torch.nn.functional as F
from torch import nn


class Graph(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 32), nn.Linear(32, 3)

    def forward(self, x, adjacency):
        return self.second(adjacency @ F.relu(self.first(adjacency @ x)))


torch.manual_seed(0)
adjacency = (torch.rand(60, 60) < 0.1).float() + torch.eye(60)
adjacency = adjacency / adjacency.sum(1, keepdim=True)
x, y = torch.randn(60, 8), torch.randint(0, 3, (60,))
model = Graph()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(5):
    optimizer.zero_grad()
    F.cross_entropy(model(x, adjacency), y).backward()
    optimizer.step()
