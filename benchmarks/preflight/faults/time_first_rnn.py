"""A recurrent layer reads the samples of a batch as its time. Finds: TA350."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(5, 16)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.head(states[:, -1])


torch.manual_seed(0)
train_loader = DataLoader(TensorDataset(torch.randn(96, 12, 5), torch.randint(0, 3, (96,))), batch_size=16)
model = Reader()
optimizer = torch.optim.Adam(model.parameters())
for x, y in train_loader:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
