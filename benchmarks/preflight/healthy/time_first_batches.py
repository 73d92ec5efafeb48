"""A collate function that stacks its samples along the second dimension, as the layer wants them."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def collate(samples):
    return torch.stack([x for x, _ in samples], 1), torch.stack([y for _, y in samples])


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.GRU(5, 16), nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.rnn(x)[0][-1])


torch.manual_seed(0)
data = TensorDataset(torch.randn(96, 12, 5), torch.randint(0, 3, (96,)))
loader = DataLoader(data, batch_size=24, shuffle=True, collate_fn=collate)
model = Reader()
optimizer = torch.optim.Adam(model.parameters())
for x, y in loader:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
