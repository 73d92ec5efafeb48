import copy

import torch
from torch import nn

torch.manual_seed(0)


def build():
    return nn.Sequential(nn.Linear(10, 24), nn.GELU(), nn.Linear(24, 1))


def follow(slow, fast, rate):
    with torch.no_grad():
        for name, value in slow.named_parameters():
            value.lerp_(fast.get_parameter(name).to(value.dtype), rate)


model = build()
slow = copy.deepcopy(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
weights = torch.randn(10, 1)
for step in range(48):
    x = torch.randn(64, 10)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), torch.tanh(x @ weights))
    loss.backward()
    optimizer.step()
    follow(slow, model, 0.001)
    if step % 16 == 0:
        print(step, loss.item())
