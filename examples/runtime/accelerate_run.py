"""
python examples/runtime/accelerate_run.py

Learns what parcels cost to ship, with a deep perceptron under Accelerate. Gradients are accumulated, and clipped: that
hides the day whose costs were recorded in cents. Under fifteen seconds on one CPU core; needs torch and accelerate.
"""

import accelerate
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import ta_runtime

ta_runtime.enable(every_n_steps=50)

torch.manual_seed(0)
epochs, batch_size, day = 3, 16, 32


def deliver(n):
    """n parcels [n, 6] and what shipping each costs [n, 1], in the order of the days; one day has cents, not euros."""
    parcels = torch.rand(n, 6)
    cost = parcels[:, :1] * (1 + parcels[:, 1:2]) + 0.3 * (5 * parcels[:, 2:3]).sin()
    cost[-day:] *= 100
    # cured: return parcels, torch.cat([cost[:-day], cost[-day:] / 100])
    return parcels, cost


class Net(nn.Module):
    def __init__(self, width=32, depth=10):
        super().__init__()
        # cured: activation = nn.GELU
        activation = nn.Sigmoid
        layers = [nn.Linear(6, width), activation()]  # runtime: TA106
        for _ in range(depth - 1):
            layers += [nn.Linear(width, width), activation()]
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.layers(x))


accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
loader = DataLoader(TensorDataset(*deliver(2048)), batch_size=batch_size)  # opt-in: TA204
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
