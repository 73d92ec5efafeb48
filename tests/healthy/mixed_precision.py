"""Tempting: autocast only around the forward pass, unscaling before clipping, a scheduler that asks the scale."""

import torch
from torch import nn

device = "cuda"
model = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten()
).to(device)
head = nn.Linear(16 * 32 * 32, 10).to(device)
parameters = [*model.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=1000)
scaler = torch.amp.GradScaler("cuda")


def train(loader):
    for inputs, labels in loader:
        inputs, labels = inputs.to(device), labels.to(device)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = nn.functional.cross_entropy(head(model(inputs)), labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(parameters, 1.0)
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        if scaler.get_scale() >= before:
            scheduler.step()
        if not torch.isfinite(norm):
            print("skipped a step")
