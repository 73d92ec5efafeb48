"""`view` where a transpose was meant puts the channels of samples together. Finds: TA350."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv1d(6, 6, 3, padding=1), nn.Linear(6 * 10, 1)

    def forward(self, x):
        hidden = F.relu(self.conv(x)).transpose(0, 2)
        return self.head(hidden.reshape(x.shape[0], -1))


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(64, 6, 10), torch.randn(64, 1)), batch_size=16, shuffle=True)
model = Mixer()
optimizer = torch.optim.Adam(model.parameters())
for x, y in loader:
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    optimizer.step()
