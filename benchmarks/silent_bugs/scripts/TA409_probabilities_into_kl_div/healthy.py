"""Distillation with a temperature."""

import torch
from torch import nn
from torch.nn import functional as F


def distillation_loss(student_logits, teacher_logits, temperature=2.0):
    target = F.softmax(teacher_logits / temperature, dim=-1)
    guess = F.log_softmax(student_logits / temperature, dim=-1)
    return F.kl_div(guess, target, reduction="batchmean")


def main():
    torch.manual_seed(0)
    teacher = nn.Linear(10, 6).eval().requires_grad_(False)
    student = nn.Sequential(nn.Linear(10, 4), nn.Linear(4, 6))
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)
    for _ in range(40):
        x = torch.randn(32, 10)
        loss = distillation_loss(student(x), teacher(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
