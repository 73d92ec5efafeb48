"""Tempting: a step, a clearing and a scaler spread over methods, totals as tensors without a graph, a copied best state."""

import copy
import math

import torch
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_


class Trainer:
    def __init__(self, model, optimizer, loader, val_loader, scheduler=None, grad_accum=2):
        self.model, self.optimizer, self.train_loader, self.val_loader = model, optimizer, loader, val_loader
        self.scheduler = scheduler
        self.grad_accum = grad_accum
        self.scaler = torch.amp.GradScaler("cuda", enabled=False)
        self.step = 0
        self.history = []
        self.best = None
        self.best_loss = math.inf

    def _loss(self, batch):
        x, y = (t.to("cuda", non_blocking=True) for t in batch)
        with torch.autocast("cuda"):
            return F.cross_entropy(self.model(x), y)

    def _run_batch(self, batch, last):
        loss = self._loss(batch) / self.grad_accum
        self.scaler.scale(loss).backward()
        if last or (self.step + 1) % self.grad_accum == 0:
            self._update()
        self.step += 1
        return loss.detach() * self.grad_accum

    def _update(self):
        self.scaler.unscale_(self.optimizer)
        clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        if self.scheduler:
            self.scheduler.step()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        total = torch.zeros((), device="cuda")
        for b in self.val_loader:
            total += self._loss(b)
        self.model.train()
        return (total / len(self.val_loader)).item()

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            running = 0.0
            for i, b in enumerate(self.train_loader):
                running += self._run_batch(b, i == len(self.train_loader) - 1)
            self.history.append(running.item() / len(self.train_loader))
            v = self.validate()
            if v < self.best_loss:
                self.best_loss = v
                self.best = copy.deepcopy(self.model.state_dict())
        self.model.load_state_dict(self.best)
