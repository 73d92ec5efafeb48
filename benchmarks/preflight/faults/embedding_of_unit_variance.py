"""An output layer tied to an embedding of unit variance begins with enormous logits. Finds: TA352."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Language(nn.Module):
    def __init__(self, words=200, width=128):
        super().__init__()
        self.table = nn.Embedding(words, width)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids):
        return self.head(self.norm(self.table(ids)))


torch.manual_seed(0)
ids = torch.randint(0, 200, (64, 17))
loader = DataLoader(TensorDataset(ids[:, :-1], ids[:, 1:]), batch_size=16, shuffle=True)
model = Language()
optimizer = torch.optim.AdamW(model.parameters())
for x, y in loader:
    optimizer.zero_grad()
    logits = model(x)
    F.cross_entropy(logits.view(-1, 200), y.reshape(-1)).backward()
    optimizer.step()
