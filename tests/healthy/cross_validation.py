"""Tempting: the same seed for each fold, models made anew, a state that no further training changes, early stopping by `break`."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader


def kfold(dataset, folds):
    results = {}
    for fold, (tr, va) in enumerate(folds):
        torch.manual_seed(42)
        model = nn.Linear(4, 2)
        opt = torch.optim.Adam(model.parameters(), 1e-3)
        sch = torch.optim.lr_scheduler.ReduceLROnPlateau(opt)
        for epoch in range(5):
            model.train()
            for x, y in DataLoader(tr, 8, shuffle=True):
                opt.zero_grad()
                l = F.cross_entropy(model(x), y)
                l.backward()
                opt.step()
            model.eval()
            vl = 0.0
            with torch.no_grad():
                for x, y in DataLoader(va, 8):
                    vl += F.cross_entropy(model(x), y).item()
            sch.step(vl)
        results[fold] = model.state_dict()
    return results


def train_fn(model, batch, opt):
    model.train()
    opt.zero_grad()
    loss = model(batch).mean()
    loss.backward()
    opt.step()
    return loss.item()


def eval_fn(model, data):
    model.eval()
    with torch.no_grad():
        return torch.cat([model(b) for b in data])


def driver(model, data, opt):
    best, wait = float("inf"), 0
    for e in range(10):
        losses = [train_fn(model, b, opt) for b in data]
        print(eval_fn(model, data).shape)
        cur = sum(losses) / len(losses)
        if cur < best:
            best, wait = cur, 0
            torch.save({"m": model.state_dict(), "o": opt.state_dict()}, "x")
        else:
            wait += 1
            if wait > 3:
                break
