"""Attention weights that sum up to one over the samples. Finds: TA350."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.score, self.head = nn.Linear(8, 1), nn.Linear(8, 4)

    def forward(self, x):
        weights = torch.softmax(self.score(x), dim=0)
        return self.head((weights * x).sum(1))


torch.manual_seed(0)
loader = DataLoader(
    TensorDataset(torch.randn(128, 6, 8), torch.randint(0, 4, (128,))), batch_size=32, shuffle=True
)
model = Pool()
optimizer = torch.optim.Adam(model.parameters())
for x, y in loader:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
