"""Tempting: the gradient of the input, taken in evaluation mode and by `backward` on purpose, then cleared."""

import torch
from torch import nn
from torch.nn import functional as F


def fgsm(model, x, y, epsilon):
    x = x.clone().detach().requires_grad_(True)
    loss = F.cross_entropy(model(x), y)
    model.zero_grad()
    loss.backward()
    return torch.clamp(x + epsilon * x.grad.sign(), 0, 1).detach()


def pgd(model, x, y, epsilon, alpha, steps):
    delta = torch.zeros_like(x, requires_grad=True)
    for _ in range(steps):
        loss = F.cross_entropy(model(x + delta), y)
        loss.backward()
        delta.data = (delta + alpha * delta.grad.detach().sign()).clamp(-epsilon, epsilon)
        delta.grad.zero_()
    return delta.detach()


def pgd_by_grad(model, x, y, steps):
    adversarial = x.detach() + 0.001 * torch.randn_like(x)
    for _ in range(steps):
        adversarial.requires_grad_()
        with torch.enable_grad():
            loss = F.cross_entropy(model(adversarial), y)
        grad = torch.autograd.grad(loss, [adversarial])[0]
        adversarial = adversarial.detach() + 0.007 * torch.sign(grad.detach())
        adversarial = torch.min(torch.max(adversarial, x - 0.03), x + 0.03).clamp(0.0, 1.0)
    return adversarial


def trades(model, x, y, optimizer, beta=6.0):
    criterion_kl = nn.KLDivLoss(reduction="sum")
    model.eval()
    adversarial = x.detach() + 0.001 * torch.randn(x.shape, device=x.device).detach()
    for _ in range(10):
        adversarial.requires_grad_()
        with torch.enable_grad():
            loss_kl = criterion_kl(F.log_softmax(model(adversarial), dim=1), F.softmax(model(x), dim=1))
        grad = torch.autograd.grad(loss_kl, [adversarial])[0]
        adversarial = torch.clamp(adversarial.detach() + 0.007 * grad.sign(), 0.0, 1.0)
    model.train()
    optimizer.zero_grad()
    logits = model(x)
    robust = criterion_kl(F.log_softmax(model(adversarial), dim=1), F.softmax(model(x), dim=1)) / x.size(0)
    return F.cross_entropy(logits, y) + beta * robust


def train(model, loader, optimizer, epochs):
    for epoch in range(epochs):
        model.train()
        for x, y in loader:
            x_adv = fgsm(model, x, y, 8 / 255)
            delta = pgd(model, x, y, 8 / 255, 2 / 255, 10)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x_adv), y) + F.cross_entropy(model(x + delta), y)
            loss = loss + F.cross_entropy(model(pgd_by_grad(model, x, y, 5)), y)
            loss.backward()
            optimizer.step()
            loss = trades(model, x, y, optimizer)
            loss.backward()
            optimizer.step()
