"""Knowledge distillation into a smaller network."""

import torch
import torch.nn.functional as F
from torch import nn

STEPS, WARMUP, TEMPERATURE = 220, 120, 2.0


class Teacher(nn.Module):
    """A fixed rule that gives soft labels."""

    def __init__(self, features=8, classes=5):
        super().__init__()
        self.register_buffer("weight", torch.randn(classes, features))
        self.register_buffer("curve", 0.5 * torch.randn(classes, features))

    def forward(self, x):
        return F.linear(x, self.weight) + F.linear(x.square() - 1, self.curve)


class Student(nn.Module):
    def __init__(self, features=8, classes=5, width=32):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(features, width), nn.Linear(width, classes)])

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = F.mish(layer(x))
        return self.layers[-1](x)


def distillation_loss(student_logits, teacher_logits):
    student = F.log_softmax(student_logits / TEMPERATURE, dim=1)
    teacher = F.softmax(teacher_logits / TEMPERATURE, dim=1)
    return F.kl_div(student, teacher, reduction="batchmean") * TEMPERATURE**2


def warmup(step):
    return min(1, (step + 1) / WARMUP)


def main():
    torch.manual_seed(234)
    teacher, student = Teacher(), Student()
    teacher.eval()
    optimizer = torch.optim.Adam(student.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=warmup)
    losses = []
    for step in range(1, STEPS + 1):
        x = torch.randn(64, 8)
        with torch.no_grad():
            target = teacher(x)
        loss = distillation_loss(student(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step % 20 == 0:
            print(f"step {step}: {sum(losses[-20:]) / 20:.4f}")


main()
