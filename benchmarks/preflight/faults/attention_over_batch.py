"""An attention that was built for time first gets the samples first. Finds: TA350."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(16, 2, 32)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.layer(x).mean(1))


torch.manual_seed(0)
train_loader = DataLoader(TensorDataset(torch.randn(96, 10, 16), torch.randint(0, 3, (96,))), batch_size=24)
model = Encoder()
optimizer = torch.optim.AdamW(model.parameters())
for x, y in train_loader:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
