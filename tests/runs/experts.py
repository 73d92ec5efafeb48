"""A mixture of experts, one of which gets no token for a long time, with zeros kept in the gradients."""

import torch
from torch import nn


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(16, 4)
        self.router.bias.data[3] = -3.0
        self.experts = nn.ModuleList(
            [nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)) for _ in range(4)]
        )

    def forward(self, x):
        chances = self.router(x).softmax(-1)
        weight, chosen = chances.max(-1)
        result = x.clone()
        for number, expert in enumerate(self.experts):
            rows = (chosen == number).nonzero()[:, 0]
            result = result.index_add(0, rows, expert(x[rows]) * weight[rows, None])
        return result


torch.manual_seed(0)
model = nn.Sequential(Mixture(), nn.LayerNorm(16), nn.Linear(16, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
truth = nn.Linear(16, 4).requires_grad_(False)
for _ in range(100):
    x = torch.randn(64, 16)
    optimizer.zero_grad(set_to_none=False)
    nn.functional.cross_entropy(model(x), truth(x).argmax(1)).backward()
    optimizer.step()
