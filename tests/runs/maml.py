import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1))
meta_optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def sample(amplitude, phase, count=10):
    x = torch.rand(count, 1) * 10 - 5
    return x, amplitude * torch.sin(x + phase)


for _iteration in range(60):
    meta_optimizer.zero_grad()
    for _task in range(4):
        amplitude, phase = 0.1 + 4.9 * torch.rand(()), torch.pi * torch.rand(())
        x, y = sample(amplitude, phase)
        weights = dict(model.named_parameters())
        loss = F.mse_loss(functional_call(model, weights, x), y)
        gradients = torch.autograd.grad(loss, weights.values(), create_graph=True)
        weights = {name: w - 0.01 * g for (name, w), g in zip(weights.items(), gradients, strict=False)}
        x, y = sample(amplitude, phase)
        outer = F.mse_loss(functional_call(model, weights, x), y)
        (outer / 4).backward()
    meta_optimizer.step()
