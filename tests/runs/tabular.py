# features as they come: years, prices, counts
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
count = 640
x = torch.stack(
    [
        torch.randint(1950, 2020, (count,)).float(),
        torch.rand(count) * 100 + 20,
        torch.randint(1, 6, (count,)).float(),
        torch.zeros(count),
        torch.rand(count),
    ],
    dim=1,
)
y = 0.02 * (x[:, 0] - 1950) + 0.03 * x[:, 1] + 0.1 * x[:, 2]
model = nn.Sequential(
    nn.BatchNorm1d(5),
    nn.Linear(5, 64),
    nn.ReLU(),
    nn.Dropout(0.1),
    nn.Linear(64, 32),
    nn.ReLU(),
    nn.Linear(32, 1),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _epoch in range(8):
    for features, target in DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True):
        loss = nn.functional.mse_loss(model(features), target.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
