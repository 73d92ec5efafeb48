import copy

import torch
from torch import nn


class WeightAverage:
    def __init__(self, model, decay=0.9999):
        self.model = copy.deepcopy(model)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for mean, weight in zip(self.model.parameters(), model.parameters()):
            mean.mul_(self.decay).add_(weight.to(mean.dtype), alpha=1 - self.decay)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
average = WeightAverage(model)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
centers = torch.randn(3, 8)

for step in range(60):
    y = torch.randint(3, (32,))
    x = centers[y] + 0.5 * torch.randn(32, 8)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    average.update(model)
    if step % 20 == 0:
        print(step, loss.item())
