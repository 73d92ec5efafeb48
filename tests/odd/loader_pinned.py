# pin_memory without an accelerator, samplers and batch samplers.
import warnings

import torch
from told import told
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset, WeightedRandomSampler

warnings.simplefilter("ignore")
torch.manual_seed(0)
data = TensorDataset(torch.randn(16, 4), torch.randn(16, 1))
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for loader in (
    DataLoader(data, 4, pin_memory=True),
    DataLoader(data, 4, sampler=WeightedRandomSampler([1.0] * 16, 16)),
    DataLoader(data, batch_sampler=BatchSampler(RandomSampler(data), 4, True)),
    DataLoader(data, batch_size=None),
):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
told(model, torch.rand(2))
