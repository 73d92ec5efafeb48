"""Several labels a sample, few of them set, with a weight for those."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
targets = (torch.rand(160, 12) < 0.1).float()
loader = DataLoader(TensorDataset(torch.randn(160, 20), targets), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 12))
criterion = nn.BCEWithLogitsLoss(pos_weight=torch.full((12,), 9.0))
optimizer = torch.optim.Adam(model.parameters())
for x, y in loader:
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    optimizer.step()
