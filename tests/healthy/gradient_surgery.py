"""Tempting: one graph gone through several times, gradients put together by hand, clearing between `backward` and `step`."""

import torch
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_


def gradnorm(model, loader, opt, shared):
    for x, y in loader:
        opt.zero_grad()
        ls = model(x, y)
        norms = []
        for l in ls:
            g = torch.autograd.grad(l, shared, retain_graph=True)[0]
            norms.append(g.norm())
        loss = sum(l / n.detach() for l, n in zip(ls, norms))
        loss.backward()
        opt.step()


def pcgrad(model, loader, opt):
    for x, ys in loader:
        grads = []
        out = model(x)
        for y in ys:
            opt.zero_grad()
            F.mse_loss(out, y).backward(retain_graph=True)
            grads.append([p.grad.clone() for p in model.parameters()])
        opt.zero_grad()
        for p, *gs in zip(model.parameters(), *grads):
            p.grad = torch.stack(gs).mean(0)
        opt.step()


def dp_sgd(model, loader, opt):
    for x, y in loader:
        acc = [torch.zeros_like(p) for p in model.parameters()]
        for xi, yi in zip(x, y):
            opt.zero_grad()
            F.cross_entropy(model(xi[None]), yi[None]).backward()
            clip_grad_norm_(model.parameters(), 1.0)
            for a, p in zip(acc, model.parameters()):
                a += p.grad
        for a, p in zip(acc, model.parameters()):
            p.grad = (a + torch.randn_like(a)) / len(x)
        opt.step()
