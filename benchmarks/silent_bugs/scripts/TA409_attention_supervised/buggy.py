"""Attention over slots that is told where to look, besides the answer."""

import math

import torch
from torch import nn


class Pointer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.answer = nn.Linear(width, 1)

    def forward(self, question, slots):
        q = self.query(question).unsqueeze(1)
        scores = q @ self.key(slots).transpose(1, 2) / math.sqrt(slots.shape[-1])
        weights = scores.softmax(dim=-1)
        return self.answer((weights @ self.value(slots)).squeeze(1)).squeeze(1), weights.squeeze(1)


class GuidedLoss(nn.Module):
    def __init__(self, strength):
        super().__init__()
        self.strength = strength
        self.answer = nn.MSELoss()
        self.guide = nn.KLDivLoss(reduction="batchmean")

    def forward(self, answer, weights, target, focus):
        guidance = self.guide(weights, focus)  # bug: TA409
        return self.answer(answer, target) + self.strength * guidance


def episode(batch, slots, width):
    content = torch.randn(batch, slots, width)
    which = torch.randint(slots, (batch,))
    rows = torch.arange(batch)
    question = content[rows, which] + 0.1 * torch.randn(batch, width)
    focus = torch.full((batch, slots), 0.1 / slots)
    focus[rows, which] += 0.9
    return question, content, content[rows, which, 0], focus


def main(steps=160, width=8):
    torch.manual_seed(30)
    model, criterion = Pointer(width), GuidedLoss(strength=0.5)
    optimizer = torch.optim.RAdam(model.parameters(), lr=5e-3)
    for step in range(1, steps + 1):
        question, content, target, focus = episode(32, 6, width)
        answer, weights = model(question, content)
        loss = criterion(answer, weights, target, focus)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


main()
