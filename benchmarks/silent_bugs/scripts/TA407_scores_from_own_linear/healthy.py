"""Logistic regression by hand: parameters in a module, F.linear, momentum of its own."""

import torch
from torch import nn
from torch.nn import functional as F


class SoftmaxRegression(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.w = nn.Parameter(0.01 * torch.randn(classes, features))
        self.b = nn.Parameter(torch.zeros(classes))

    def forward(self, x):
        return F.linear(x, self.w, self.b).log_softmax(dim=1)


class Momentum(torch.optim.Optimizer):
    def __init__(self, params, lr, beta=0.8):
        super().__init__(params, {"lr": lr, "beta": beta})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                velocity = self.state[p].setdefault("velocity", torch.zeros_like(p))
                velocity.mul_(group["beta"]).add_(p.grad)
                p.sub_(group["lr"] * velocity)


def draw(count, centres):
    labels = torch.randint(len(centres), (count,))
    return centres[labels] + torch.randn(count, centres.shape[1]), labels


def main():
    torch.manual_seed(6)
    centres = 1.5 * torch.randn(5, 8)
    model = SoftmaxRegression(8, 5)
    optimizer = Momentum(model.parameters(), lr=0.02)
    criterion = nn.NLLLoss(reduction="mean")
    for step in range(120):
        x, labels = draw(40, centres)
        loss = criterion(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(step, round(loss.item(), 4))
    model.eval()
    with torch.no_grad():
        x, labels = draw(500, centres)
        print("accuracy", (model(x).argmax(1) == labels).float().mean().item())


main()
