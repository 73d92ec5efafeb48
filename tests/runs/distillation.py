# as in the PyTorch tutorial
import torch
from torch import nn

torch.manual_seed(0)
teacher = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10))
student = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10))
truth = torch.randn(32, 10)


def batch():
    inputs = torch.randn(64, 32)
    return inputs, (inputs @ truth).argmax(1)


ce_loss = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(teacher.parameters(), lr=0.001)
teacher.train()
for _ in range(60):
    inputs, labels = batch()
    optimizer.zero_grad()
    loss = ce_loss(teacher(inputs), labels)
    loss.backward()
    optimizer.step()

T = 2
optimizer = torch.optim.Adam(student.parameters(), lr=0.001)
teacher.eval()
student.train()
for _ in range(60):
    inputs, labels = batch()
    optimizer.zero_grad()
    with torch.no_grad():
        teacher_logits = teacher(inputs)
    student_logits = student(inputs)
    soft_targets = nn.functional.softmax(teacher_logits / T, dim=-1)
    soft_prob = nn.functional.log_softmax(student_logits / T, dim=-1)
    soft_targets_loss = (
        torch.sum(soft_targets * (soft_targets.log() - soft_prob)) / soft_prob.size()[0] * (T**2)
    )
    loss = 0.25 * soft_targets_loss + 0.75 * ce_loss(student_logits, labels)
    loss.backward()
    optimizer.step()
