"""Adversarial training by PGD."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 49, 10))
opt = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)


def pgd(model, x, y, eps=0.1, alpha=0.03, iters=4):
    delta = torch.empty_like(x).uniform_(-eps, eps).requires_grad_(True)
    for _ in range(iters):
        loss = F.cross_entropy(model(x + delta), y)
        loss.backward()
        delta.data = (delta.data + alpha * delta.grad.detach().sign()).clamp(-eps, eps)
        delta.grad.zero_()
    return delta.detach()


def trades(model, x):
    model.eval()
    xa = x.detach() + 0.001 * torch.randn_like(x)
    with torch.no_grad():
        p = F.softmax(model(x), 1)
    for _ in range(3):
        xa.requires_grad_()
        with torch.enable_grad():
            l = F.kl_div(F.log_softmax(model(xa), 1), p, reduction="sum")
        g = torch.autograd.grad(l, [xa])[0]
        xa = (xa.detach() + 0.01 * g.sign()).clamp(0, 1)
    model.train()
    return xa


for it in range(40):
    y = torch.randint(0, 10, (32,))
    x = torch.rand(32, 1, 14, 14) * 0.3
    x[torch.arange(32), 0, y] += 0.6
    if it % 2:
        d = pgd(model, x, y)
        opt.zero_grad()
        loss = F.cross_entropy(model(x + d), y)
    else:
        xa = trades(model, x)
        opt.zero_grad()
        out = model(x)
        loss = F.cross_entropy(out, y) + 6 / 32 * F.kl_div(
            F.log_softmax(model(xa), 1), F.softmax(out, 1), reduction="sum"
        )
    loss.backward()
    opt.step()
