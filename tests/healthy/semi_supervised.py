"""Tempting: evaluation mode inside the training loop and back, jumps in a mask, an attack on the input that clears the weights."""

import torch
from torch.nn import functional as F


def active(model, pool, opt):
    for rnd in range(3):
        model.eval()
        with torch.no_grad():
            p = F.softmax(model(pool), 1)
            ent = -(p * F.log_softmax(model(pool), 1)).sum(1)
        idx = ent.topk(10).indices
        model.train()
        for _ in range(5):
            opt.zero_grad()
            F.cross_entropy(model(pool[idx]), torch.zeros(10).long()).backward()
            opt.step()


def pseudo(model, lab, unl, opt):
    for (x, y), u in zip(lab, unl):
        model.eval()
        with torch.no_grad():
            q = F.softmax(model(u), dim=1)
            conf, hard = q.max(1)
        model.train()
        mask = conf.ge(0.95).float()
        loss = (
            F.cross_entropy(model(x), y) + (F.cross_entropy(model(u), hard, reduction="none") * mask).mean()
        )
        opt.zero_grad()
        loss.backward()
        opt.step()


def vat(model, x):
    with torch.no_grad():
        pred = F.softmax(model(x), 1)
    d = torch.rand_like(x).sub(0.5)
    for _ in range(1):
        d.requires_grad_()
        lp = F.log_softmax(model(x + 10 * d), 1)
        F.kl_div(lp, pred, reduction="batchmean").backward()
        d = F.normalize(d.grad, dim=1)
        model.zero_grad()
    return F.kl_div(F.log_softmax(model(x + d), 1), pred, reduction="batchmean")
