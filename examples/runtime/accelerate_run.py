"""
python examples/runtime/accelerate_run.py

Learns what parcels cost to ship, under Accelerate. Gradients are accumulated, and clipped: that hides the day whose
costs were recorded in forints instead of euros. Under fifteen seconds on one CPU core; needs torch and accelerate.
"""

import accelerate
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import ta_runtime

ta_runtime.enable(every_n_steps=50)

torch.manual_seed(0)
epochs, batch_size, day = 4, 32, 64


def deliver(n):
    """n parcels [n, 3], of some grams, kilometres and floors, and their costs [n, 1]; the last day in forints."""
    parcels = torch.rand(n, 3) * torch.tensor([5000.0, 1000.0, 10.0])
    grams, kilometres, floors = parcels.split(1, dim=1)
    cost = 0.5 + grams / 5000 * (1 + kilometres / 1000) + 0.1 * floors
    cost[-day:] *= 400
    # cured: return parcels / parcels.mean(dim=0) - 1, torch.cat([cost[:-day], cost[-day:] / 400])
    return parcels, cost


class Net(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.up = nn.Linear(3, width)
        self.squash = nn.Tanh()  # runtime: TA109
        self.mix = nn.Linear(width, width)
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(F.gelu(self.mix(self.squash(self.up(x)))))


accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
loader = DataLoader(TensorDataset(*deliver(4096)), batch_size=batch_size)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

for epoch in range(epochs):
    model.train()
    losses = []
    for parcels, cost in loader:
        with accelerator.accumulate(model):
            loss = F.mse_loss(model(parcels), cost)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()  # runtime: TA102
            optimizer.zero_grad()
        losses.append(loss.item())
    print(f"epoch {epoch}: median loss {torch.tensor(losses).median():.4f}")
