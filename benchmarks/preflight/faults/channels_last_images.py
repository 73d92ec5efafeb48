"""Images as they are read, with their channels last. Finds: TA303."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
images = torch.rand(64, 32, 32, 3)
train_loader = DataLoader(TensorDataset(images, torch.randint(0, 5, (64,))), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Conv2d(32, 16, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 32 * 3, 5))
optimizer = torch.optim.Adam(model.parameters())
for x, y in train_loader:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
