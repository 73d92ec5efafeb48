"""Tempting: tensors that require gradients and are changed in place where that is allowed, steps without an optimizer."""

import torch
from torch import nn

w = torch.zeros(3, requires_grad=True)
w.share_memory_()
for _ in range(100):
    loss = (w - 1).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        w.grad = None

embedding = nn.Embedding(10, 4, padding_idx=0)
embedding.weight.data.uniform_(-1, 1)
embedding.weight.data[0].fill_(0)
rows = embedding.weight.detach().cpu().numpy()

layer = nn.Linear(4, 4)
parameters = {name: value.detach().clone().requires_grad_() for name, value in layer.named_parameters()}
for _ in range(10):
    loss = sum(value.pow(2).sum() for value in parameters.values())
    gradients = torch.autograd.grad(loss, list(parameters.values()))
    with torch.no_grad():
        for value, gradient in zip(parameters.values(), gradients, strict=True):
            value -= 0.1 * gradient

with torch.set_grad_enabled(False):
    w.add_(1)
copy = w.detach()
copy += 1
shifted = torch.randn(3, requires_grad=True) * 2
shifted.clamp_(0)
print(rows.shape, copy, shifted)
