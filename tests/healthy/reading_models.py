"""Tempting: gradients of inputs in evaluation, hooks, generation with a cache, warm-up calls before a timing."""

import time

import torch


def saliency(model, loader):
    maps = []
    for x, y in loader:
        x.requires_grad_()
        s = model(x).gather(1, y.view(-1, 1)).squeeze()
        s.backward(torch.ones_like(s))
        maps.append(x.grad.abs().max(1)[0])
        x.grad = None
    return maps


def hooks(model, x):
    feats = {}
    model.layer.register_forward_hook(lambda m, i, o: feats.__setitem__("a", o.detach()))
    model(x)
    return feats


def generate(model, ids, n):
    model.eval()
    past = None
    with torch.inference_mode():
        for _ in range(n):
            out, past = model(ids[:, -1:], past)
            ids = torch.cat([ids, out[:, -1].argmax(-1, keepdim=True)], 1)
    return ids


def time_it(model, x):
    for _ in range(10):
        model(x)
    torch.cuda.synchronize()
    t = time.time()
    with torch.no_grad():
        for _ in range(10):
            model(x)
    torch.cuda.synchronize()
    return time.time() - t
