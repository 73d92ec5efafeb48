"""Four micro-batches a step, mixed precision, and a scheduler."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(
    TensorDataset(torch.randn(128, 10), torch.randint(0, 4, (128,))), batch_size=8, shuffle=True
)
model = nn.Sequential(nn.Linear(10, 64), nn.GELU(), nn.Linear(64, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)
for number, (x, y) in enumerate(loader, 1):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = F.cross_entropy(model(x), y) / 4
    loss.backward()
    if number % 4 == 0:
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
