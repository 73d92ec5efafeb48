"""What the layers below compute is taken from the graph, and the head is frozen. Finds: TA351 or TA500."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.scale = nn.Linear(6, 16), nn.Linear(16, 1)

    def forward(self, x):
        hidden = torch.relu(self.body(x)).detach()
        return self.scale(hidden)


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(96, 6), torch.randn(96, 1)), batch_size=16, shuffle=True)
model = Net()
optimizer = torch.optim.Adam(model.body.parameters())
for x, y in loader:
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    optimizer.step()
