"""The loss counts the padding of its targets. Finds: TA312."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 16, padding_idx=0)
        self.rnn = nn.LSTM(16, 16, batch_first=True)
        self.head = nn.Linear(16, 50)

    def forward(self, ids):
        return self.head(self.rnn(self.table(ids))[0])


torch.manual_seed(0)
ids = torch.randint(1, 50, (64, 12))
ids[torch.arange(12) >= torch.randint(3, 9, (64, 1))] = 0
loader = DataLoader(TensorDataset(ids[:, :-1], ids[:, 1:]), batch_size=16, shuffle=True)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters())
for x, y in loader:
    optimizer.zero_grad()
    F.cross_entropy(model(x).flatten(0, 1), y.flatten()).backward()
    optimizer.step()
