"""A small model learns what a large one says."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(
    TensorDataset(torch.randn(128, 10), torch.randint(0, 5, (128,))), batch_size=32, shuffle=True
)
teacher = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 5)).eval().requires_grad_(False)
student = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 5))
optimizer = torch.optim.Adam(student.parameters())
for x, y in loader:
    with torch.no_grad():
        told = F.softmax(teacher(x) / 2, dim=1)
    logits = student(x)
    loss = 4 * F.kl_div(F.log_softmax(logits / 2, dim=1), told, reduction="batchmean") + F.cross_entropy(
        logits, y
    )
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
