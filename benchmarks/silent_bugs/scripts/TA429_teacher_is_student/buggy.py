"""Mean teacher: few labels, and agreement with a slow average of the model on the rest."""

import torch
import torch.nn.functional as F
from torch import nn


class MeanTeacher:
    def __init__(self, student, device, decay=0.98):
        self.student = student.to(device)
        self.teacher = self.student.to(device)  # bug: TA429 (static)
        self.decay = decay

    @torch.no_grad()
    def average(self):
        for slow, fast in zip(self.teacher.parameters(), self.student.parameters()):
            slow.mul_(self.decay).add_(fast, alpha=1 - self.decay)  # bug: TA429 (runtime)

    @torch.no_grad()
    def opinion(self, x):
        return self.teacher(x).softmax(dim=1)


def spirals(count):
    labels = torch.randint(2, (count,))
    t = 0.3 + 3 * torch.rand(count)
    angle = 1.5 * t + 3.1416 * labels
    points = torch.stack([t * angle.cos(), t * angle.sin()], dim=1) / 2
    return points + 0.05 * torch.randn(count, 2), labels


def main():
    torch.manual_seed(76)
    device = torch.device("cpu")
    net = nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2))
    pair = MeanTeacher(net, device)
    optimizer = torch.optim.Adam(pair.student.parameters(), lr=4e-3)
    for step in range(200):
        x, labels = spirals(32)
        free, _ = spirals(64)
        supervised = F.cross_entropy(pair.student(x), labels)
        guess = pair.student(free + 0.05 * torch.randn_like(free)).softmax(dim=1)
        agreement = F.mse_loss(guess, pair.opinion(free))
        loss = supervised + min(1.0, step / 100) * agreement
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        pair.average()
        if step % 40 == 0:
            print(f"step {step}: {supervised.item():.3f} + {agreement.item():.4f}")


main()
