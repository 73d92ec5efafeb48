"""Two subsets of one data set share indices. Finds: TA320."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset


def split(dataset, held_out):
    order = torch.randperm(len(dataset)).tolist()
    return Subset(dataset, order[: -held_out // 2]), Subset(dataset, order[-held_out:])


torch.manual_seed(0)
dataset = TensorDataset(torch.randn(160, 7), torch.randn(160, 1))
train_set, test_set = split(dataset, 60)
train = DataLoader(train_set, batch_size=20, shuffle=True)
test = DataLoader(test_set, batch_size=20)
model = nn.Linear(7, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _epoch in range(2):
    for x, y in train:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
