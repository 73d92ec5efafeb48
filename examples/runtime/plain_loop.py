"""
python examples/runtime/plain_loop.py

Predicts the energy use of a room from eight sensor readings with a residual perceptron, in a plain loop, and gets no
further than the mean of what it should predict. The optimizer comes out of a table of settings, as in larger projects,
so that its source does not say what it does. Under ten seconds on one CPU core; needs torch alone.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import ta_runtime

ta_runtime.enable(every_n_steps=50)

torch.manual_seed(0)
settings = {
    "epochs": 8,
    "optimizer": "adam",
    # cured: "optimizer_options": {"lr": 3e-3},
    "optimizer_options": {"lr": 3e-3, "weight_decay": 1e-2},
}
OPTIMIZERS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}


def measure(n):
    """n readings [n, 8] of sensors, standardised, and the energy used [n]."""
    readings = torch.randn(n, 8)
    energy = torch.sin(2 * readings[:, 0]) + readings[:, 1] * readings[:, 2] + 0.5 * readings[:, 3].abs()
    return readings, energy + 0.1 * torch.randn(n)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.gate = nn.Linear(width, 2 * width)  # runtime: TA500
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        h = self.norm(x)
        # cured: return x + self.down(F.gelu(self.gate(h)) * self.up(h))
        return x + self.down(F.gelu(self.up(h)))


class Net(nn.Module):
    def __init__(self, width=32, depth=2):
        super().__init__()
        self.stem = nn.Linear(8, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(depth)))
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


train_loader = DataLoader(TensorDataset(*measure(2048)), batch_size=64, shuffle=True)
test_readings, test_energy = measure(512)

model = Net()
build = OPTIMIZERS[settings["optimizer"]]
optimizer = build(model.parameters(), **settings["optimizer_options"])  # static: TA401  # runtime: TA401

for epoch in range(settings["epochs"]):
    model.train()
    total = 0.0
    for readings, energy in train_loader:
        optimizer.zero_grad()
        # cured: loss = F.mse_loss(model(readings).squeeze(1), energy)
        loss = F.mse_loss(model(readings), energy)  # static: TA316  # runtime: TA316
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(train_loader):.4f}")

model.eval()
with torch.no_grad():
    error = (model(test_readings).squeeze(1) - test_energy).square().mean()
print(f"test R2 {1 - error / test_energy.var():.3f}")
