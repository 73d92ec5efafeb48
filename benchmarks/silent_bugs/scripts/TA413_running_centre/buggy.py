"""Self-distillation with a centred teacher; the state of the loss goes into the checkpoint."""

import copy
import io

import torch
import torch.nn.functional as F
from torch import nn


class CentredLoss(nn.Module):
    def __init__(self, outputs, student_temperature=0.2, teacher_temperature=0.1, momentum=0.9):
        super().__init__()
        self.student_temperature = student_temperature
        self.teacher_temperature = teacher_temperature
        self.momentum = momentum
        self.centre = torch.zeros(1, outputs)  # bug: TA413

    def forward(self, student, teacher):
        target = F.softmax((teacher - self.centre) / self.teacher_temperature, dim=-1)
        loss = -(target * F.log_softmax(student / self.student_temperature, dim=-1)).sum(dim=-1).mean()
        with torch.no_grad():
            self.centre.mul_(self.momentum).add_(teacher.mean(dim=0, keepdim=True), alpha=1 - self.momentum)
        return loss


def views(count):
    kind = torch.randint(5, (count,))
    base = F.one_hot(kind, 5).float().repeat(1, 2) - 0.2
    return base + 0.3 * torch.randn_like(base), base + 0.3 * torch.randn_like(base)


def main():
    torch.manual_seed(37)
    student = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.Linear(32, 8))
    teacher = copy.deepcopy(student).requires_grad_(False)
    criterion = CentredLoss(8)
    optimizer = torch.optim.AdamW(student.parameters(), lr=3e-3)
    for step in range(120):
        first, second = views(32)
        with torch.no_grad():
            guide = teacher(second)
        loss = criterion(student(first), guide)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(teacher.parameters(), student.parameters()):
                slow.lerp_(fast, 0.01)
        if step % 40 == 39:
            print(f"step {step + 1}: {loss.item():.3f}")
    file = io.BytesIO()
    torch.save(
        {"student": student.state_dict(), "teacher": teacher.state_dict(), "loss": criterion.state_dict()},
        file,
    )
    print("checkpoint", file.tell(), "bytes")


main()
