"""A generator against a discriminator."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(128, 6)), batch_size=32, shuffle=True)
generator = nn.Sequential(nn.Linear(4, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 6))
critic = nn.Sequential(nn.Linear(6, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
first = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
second = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
for (real,) in loader:
    fake = generator(torch.randn(len(real), 4))
    second.zero_grad()
    loss = F.binary_cross_entropy_with_logits(critic(real), torch.ones(len(real), 1))
    loss = loss + F.binary_cross_entropy_with_logits(critic(fake.detach()), torch.zeros(len(real), 1))
    loss.backward()
    second.step()
    first.zero_grad()
    F.binary_cross_entropy_with_logits(critic(fake), torch.ones(len(real), 1)).backward()
    first.step()
