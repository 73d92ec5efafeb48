"""Tempting: a teacher that no optimizer has, evaluated in a loop that trains, and the gradient-free output in the loss."""

import torch
from torch import nn
from torch.nn import functional as F
from torchvision import models

teacher = models.resnet34(weights=models.ResNet34_Weights.DEFAULT)
student = models.resnet18(num_classes=1000)
teacher.eval()
teacher.requires_grad_(False)
adapter = nn.Conv2d(512, 512, kernel_size=1)
optimizer = torch.optim.SGD([*student.parameters(), *adapter.parameters()], lr=0.1, momentum=0.9)
T, alpha = 4.0, 0.9


def train(loader, epochs):
    for epoch in range(epochs):
        student.train()
        for x, y in loader:
            with torch.no_grad():
                soft = F.softmax(teacher(x) / T, dim=1)
            logits = student(x)
            kd = F.kl_div(F.log_softmax(logits / T, dim=1), soft, reduction="batchmean") * T * T
            loss = alpha * kd + (1 - alpha) * F.cross_entropy(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        validate(loader)


def validate(loader):
    student.eval()
    right = total = 0
    with torch.no_grad():
        for x, y in loader:
            right += (student(x).argmax(1) == y).sum().item()
            total += y.numel()
    print(right / total)
