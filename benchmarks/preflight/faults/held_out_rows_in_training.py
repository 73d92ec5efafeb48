"""The validation set is cut from the table, and the training set is the whole table. Finds: TA320."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = torch.randn(200, 9), torch.randint(0, 3, (200,))
train_loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
val_loader = DataLoader(TensorDataset(x[150:], y[150:]), batch_size=50)
model = nn.Sequential(nn.Linear(9, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters())
for _epoch in range(2):
    for inputs, target in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), target).backward()
        optimizer.step()
    with torch.no_grad():
        print(sum(float(F.cross_entropy(model(a), b)) for a, b in val_loader))
