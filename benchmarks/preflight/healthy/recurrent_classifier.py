"""A recurrent network that reads samples first."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(5, 16, 2, dropout=0.2, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.head(states[:, -1])


torch.manual_seed(0)
loader = DataLoader(
    TensorDataset(torch.randn(96, 12, 5), torch.randint(0, 3, (96,))), batch_size=24, shuffle=True
)
model = Reader()
optimizer = torch.optim.Adam(model.parameters())
for x, y in loader:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
