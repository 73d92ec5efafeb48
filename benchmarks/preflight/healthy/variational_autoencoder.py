"""An autoencoder that draws its codes, with a divergence beside the reconstruction."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.mean, self.logvar = nn.Linear(20, 32), nn.Linear(32, 4), nn.Linear(32, 4)
        self.decode = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 20))

    def forward(self, x):
        hidden = F.relu(self.encode(x))
        mean, logvar = self.mean(hidden), self.logvar(hidden)
        code = mean + torch.randn_like(mean) * (logvar / 2).exp()
        return torch.sigmoid(self.decode(code)), mean, logvar


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.rand(128, 20)), batch_size=32, shuffle=True)
model = VAE()
optimizer = torch.optim.Adam(model.parameters())
for (x,) in loader:
    output, mean, logvar = model(x)
    divergence = -0.5 * (1 + logvar - mean.square() - logvar.exp()).sum(1).mean()
    loss = F.binary_cross_entropy(output, x, reduction="sum") / len(x) + divergence
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
