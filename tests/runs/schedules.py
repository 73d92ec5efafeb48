"""Schedules in the ways that people step them."""

import torch
from torch import nn
from torch.optim import lr_scheduler as S

torch.manual_seed(0)
X = torch.randn(160, 6)
Y = X @ torch.randn(6, 2)


def run(make, per_batch=False, fractional=False, start=False, epochs=5, valid=False):
    model = nn.Linear(6, 2)
    opt = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    sched = make(opt)
    for epoch in range(epochs):
        idx = torch.randperm(160).split(16)
        for i, j in enumerate(idx):
            opt.zero_grad()
            loss = nn.functional.mse_loss(model(X[j]), Y[j])
            loss.backward()
            opt.step()
            if fractional:
                sched.step(epoch + i / len(idx))
            elif per_batch:
                sched.step()
        if valid:
            sched.step(loss.detach())
        elif not (per_batch or fractional):
            sched.step()


run(lambda o: S.CosineAnnealingLR(o, 5))
run(lambda o: S.OneCycleLR(o, 0.1, epochs=5, steps_per_epoch=10), per_batch=True)
run(lambda o: S.StepLR(o, 20, 0.5), per_batch=True)
run(lambda o: S.CosineAnnealingWarmRestarts(o, 2), fractional=True)
run(lambda o: S.ReduceLROnPlateau(o, patience=1), valid=True)
run(lambda o: S.MultiStepLR(o, [2, 4]))
run(
    lambda o: S.SequentialLR(
        o, [S.LinearLR(o, 0.1, total_iters=10), S.CosineAnnealingLR(o, 40)], milestones=[10]
    ),
    per_batch=True,
)
run(lambda o: S.ExponentialLR(o, 0.999), per_batch=True)
run(lambda o: S.LambdaLR(o, lambda s: (s + 1) ** -0.5), per_batch=True)
run(lambda o: S.CyclicLR(o, 0.001, 0.01, step_size_up=10), per_batch=True)
run(lambda o: S.StepLR(o, 30))
run(lambda o: S.PolynomialLR(o, 50), per_batch=True)
# warm-up by batch and plateau by epoch
model = nn.Linear(6, 2)
opt = torch.optim.AdamW(model.parameters(), 1e-2)
warm = S.LinearLR(opt, 0.1, total_iters=15)
main = S.StepLR(opt, 2, 0.5)
for epoch in range(5):
    for j in torch.randperm(160).split(16):
        opt.zero_grad()
        nn.functional.mse_loss(model(X[j]), Y[j]).backward()
        opt.step()
        if epoch < 2:
            warm.step()
    if epoch >= 2:
        main.step()
# by hand
opt = torch.optim.SGD(model.parameters(), 0.01)
for it in range(30):
    for g in opt.param_groups:
        g["lr"] = 0.01 * min(1, (it + 1) / 10)
    j = torch.randint(0, 160, (16,))
    opt.zero_grad()
    nn.functional.mse_loss(model(X[j]), Y[j]).backward()
    opt.step()
