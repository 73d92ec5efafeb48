"""A diffusion model: it predicts the noise that its inputs were given."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Embedding(50, 32)
        self.first, self.second = nn.Conv1d(2, 32, 3, padding=1), nn.Conv1d(32, 2, 3, padding=1)
        nn.init.zeros_(self.second.weight)
        nn.init.zeros_(self.second.bias)

    def forward(self, x, time):
        return self.second(F.silu(self.first(x) + self.time(time)[:, :, None]))


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(96, 2, 16)), batch_size=24, shuffle=True)
model = Denoiser()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
keep = torch.linspace(0.99, 0.1, 50)
for (x,) in loader:
    time = torch.randint(0, 50, (len(x),))
    noise, share = torch.randn_like(x), keep[time][:, None, None]
    loss = F.mse_loss(model(share.sqrt() * x + (1 - share).sqrt() * noise, time), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
