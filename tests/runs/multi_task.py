# one task a step, so that the other heads wait
import random

import torch
from torch import nn
from torch.nn import functional as F


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(16, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 64), nn.GELU()
        )
        self.heads = nn.ModuleDict(
            {"class": nn.Linear(64, 5), "value": nn.Linear(64, 1), "tags": nn.Linear(64, 3)}
        )

    def forward(self, x, task):
        return self.heads[task](self.trunk(x))


torch.manual_seed(0)
random.seed(0)
model = MultiTask()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
truth = torch.randn(16, 9)
for _ in range(90):
    x = torch.randn(32, 16)
    answers = x @ truth
    task = random.choice(["class", "value", "tags"])
    output = model(x, task)
    if task == "class":
        loss = F.cross_entropy(output, answers[:, :5].argmax(1))
    elif task == "value":
        loss = F.mse_loss(output, answers[:, 5:6])
    else:
        loss = F.binary_cross_entropy_with_logits(output, (answers[:, 6:] > 0).float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
