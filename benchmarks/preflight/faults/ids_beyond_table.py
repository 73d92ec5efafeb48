"""A vocabulary that grew after the model was built. Finds: TA305."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Bag(nn.Module):
    def __init__(self, words, classes):
        super().__init__()
        self.table = nn.Embedding(words, 16)
        self.head = nn.Linear(16, classes)

    def forward(self, ids):
        return self.head(self.table(ids).mean(1))


torch.manual_seed(0)
train_loader = DataLoader(
    TensorDataset(torch.randint(0, 120, (64, 8)), torch.randint(0, 2, (64,))), batch_size=16
)
model = Bag(100, 2)
optimizer = torch.optim.Adam(model.parameters())
for ids, y in train_loader:
    optimizer.zero_grad()
    F.cross_entropy(model(ids), y).backward()
    optimizer.step()
