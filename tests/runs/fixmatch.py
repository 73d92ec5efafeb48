"""FixMatch with EMA: labelled and unlabelled batches in one forward; pseudo labels detached; two loaders, endless."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

torch.manual_seed(0)
w = torch.randn(3 * 64, 4)
X = torch.randn(400, 3, 8, 8)
Y = (X.flatten(1) @ w).argmax(1)
lab = DataLoader(
    TensorDataset(X[:64], Y[:64]), sampler=RandomSampler(range(64)), batch_size=8, drop_last=True
)
unl = DataLoader(TensorDataset(X[64:336]), sampler=RandomSampler(range(272)), batch_size=24, drop_last=True)
test = DataLoader(TensorDataset(X[336:], Y[336:]), batch_size=32)
model = nn.Sequential(
    nn.Conv2d(3, 16, 3, 1, 1, bias=False),
    nn.BatchNorm2d(16),
    nn.LeakyReLU(0.1),
    nn.Conv2d(16, 16, 3, 2, 1, bias=False),
    nn.BatchNorm2d(16),
    nn.LeakyReLU(0.1),
    nn.Flatten(),
    nn.Dropout(0.1),
    nn.Linear(256, 4),
)


class ModelEMA:
    def __init__(self, model, decay):
        self.ema = copy.deepcopy(model)
        self.ema.eval()
        self.decay = decay
        self.param_keys = [k for k, _ in self.ema.named_parameters()]
        self.buffer_keys = [k for k, _ in self.ema.named_buffers()]
        for p in self.ema.parameters():
            p.requires_grad_(False)

    def update(self, model):
        with torch.no_grad():
            msd, esd = model.state_dict(), self.ema.state_dict()
            for k in self.param_keys:
                esd[k].copy_(esd[k] * self.decay + (1 - self.decay) * msd[k].detach())
            for k in self.buffer_keys:
                esd[k].copy_(msd[k])


no_decay = ["bias", "1", "4"]
opt = torch.optim.SGD(
    [
        {"params": [p for n, p in model.named_parameters() if p.ndim > 1], "weight_decay": 5e-4},
        {"params": [p for n, p in model.named_parameters() if p.ndim <= 1], "weight_decay": 0.0},
    ],
    lr=0.03,
    momentum=0.9,
    nesterov=True,
)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: max(0.0, math.cos(3.14159 * 7 / 16 * s / 60)))
ema = ModelEMA(model, 0.99)
li, ui = iter(lab), iter(unl)
for _epoch in range(3):
    model.train()
    for _step in range(20):
        try:
            xl, yl = next(li)
        except StopIteration:
            li = iter(lab)
            xl, yl = next(li)
        try:
            (xu,) = next(ui)
        except StopIteration:
            ui = iter(unl)
            (xu,) = next(ui)
        weak, strong = xu + 0.02 * torch.randn_like(xu), xu.flip(-1) + 0.3 * torch.randn_like(xu)
        logits = model(torch.cat([xl, weak, strong]))
        ll, (lw, ls) = logits[:8], logits[8:].chunk(2)
        del logits
        lx = F.cross_entropy(ll, yl)
        p = torch.softmax(lw.detach() / 1.0, -1)
        mx, t = p.max(-1)
        mask = mx.ge(0.6).float()
        lu = (F.cross_entropy(ls, t, reduction="none") * mask).mean()
        (lx + lu).backward()
        opt.step()
        sched.step()
        ema.update(model)
        model.zero_grad()
    ema.ema.eval()
    with torch.no_grad():
        for x, _y in test:
            ema.ema(x)
