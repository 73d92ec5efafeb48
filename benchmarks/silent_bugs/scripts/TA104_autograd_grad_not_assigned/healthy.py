"""Two losses whose gradients are made orthogonal before the step (gradient surgery)."""

import torch
from torch import nn


def flatten(tensors):
    return torch.cat([t.reshape(-1) for t in tensors])


def without_conflict(first, second):
    dot = first @ second
    if dot < 0:
        first = first - dot / second.square().sum() * second
    return first


def unflatten(vector, like):
    parts = vector.split([p.numel() for p in like])
    return [part.view_as(p) for part, p in zip(parts, like)]


class Surgeon:
    def __init__(self, model, optimizer):
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.optimizer = optimizer

    def step(self, losses):
        gradients = []
        for loss in losses:
            grads = torch.autograd.grad(loss, self.parameters, retain_graph=loss is not losses[-1])
            gradients.append(flatten(grads))
        a, b = gradients
        combined = without_conflict(a, b) + without_conflict(b, a)
        update = unflatten(combined, self.parameters)
        for p, g in zip(self.parameters, update):
            p.grad = g
        self.optimizer.step()
        return combined.norm().item(), len(update)


def main():
    torch.manual_seed(8)
    model = nn.Sequential(nn.Linear(6, 24), nn.Softplus(), nn.Linear(24, 2))
    surgeon = Surgeon(model, torch.optim.SGD(model.parameters(), lr=0.02))
    for step in range(100):
        x = torch.randn(32, 6)
        out = model(x)
        losses = [
            (out[:, 0] - x.sum(1)).square().mean(),
            (out[:, 1] - x[:, :3].sum(1)).square().mean(),
        ]
        norm, _ = surgeon.step(losses)
        if step % 25 == 0:
            print(step, [round(loss.item(), 3) for loss in losses], round(norm, 3))


if __name__ == "__main__":
    main()
