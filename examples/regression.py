"""
python examples/regression.py

A deep perceptron fits a smooth function of eight variables. The loss falls from the first epoch on.
One planted bug, marked on its line: most of the network never trains.
Under ten seconds on one CPU core; needs torch alone.
"""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
epochs, batch_size, width, lr = 20, 64, 64, 1e-3


def make_data(n):
    """Inputs [n, 8] in [-1, 1] and noisy targets [n, 1]."""
    x = 2 * torch.rand(n, 8) - 1
    y = torch.sin(3 * x[:, :1]) * x[:, 1:2] + x[:, 2:3] ** 2 - x[:, 3:4] * x[:, 4:5] + 0.5 * x[:, 5:6]
    return x, y + 0.05 * torch.randn_like(y)


x_train, y_train = make_data(4000)
x_test, y_test = make_data(1000)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=batch_size, shuffle=True)


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = [  # static: TA410
            nn.Linear(8, width),
            nn.Linear(width, width),
            nn.Linear(width, width),
        ]
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return self.head(x)


model = MLP()
optimizer = torch.optim.Adam(model.parameters(), lr=lr)
criterion = nn.MSELoss()
print(f"{sum(p.numel() for p in model.parameters())} parameters in the optimizer")

for epoch in range(epochs):
    total = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
    if epoch % 2 == 0 or epoch == epochs - 1:
        print(f"epoch {epoch:2d}: mean squared error {total / len(x_train):.4f}")

with torch.no_grad():
    r2 = 1 - (model(x_test) - y_test).var() / y_test.var()
print(f"test R^2 {r2.item():.3f}")
