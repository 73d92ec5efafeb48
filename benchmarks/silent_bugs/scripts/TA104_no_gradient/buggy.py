"""Distils a large network into a small one, which is first copied to be changed safely."""

import copy

import torch
from torch import nn


def make_student():
    return nn.Sequential(nn.Linear(12, 16), nn.GELU(), nn.Linear(16, 5))


def distil(teacher, student, steps=30):
    working = copy.deepcopy(student)
    working.train()
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3)
    for _ in range(steps):
        x = torch.randn(64, 12)
        with torch.no_grad():
            target = teacher(x).softmax(dim=-1)
        loss = nn.functional.kl_div(working(x).log_softmax(dim=-1), target, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # bug: TA104 (runtime)
    return working, loss.item()


def main():
    torch.manual_seed(2)
    teacher = nn.Sequential(nn.Linear(12, 64), nn.GELU(), nn.Linear(64, 5)).eval()
    _, loss = distil(teacher, make_student())
    print(f"distilled, {loss:.4f}")


if __name__ == "__main__":
    main()
