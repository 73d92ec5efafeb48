import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(
    nn.Linear(8, 32, bias=False), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 64), nn.Tanh()
)
discriminator = nn.Sequential(nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
for_generator = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
for_discriminator = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)
for _ in range(120):
    real = torch.where(torch.rand(32, 64) < 0.1, 0.9, -1.0)
    fake = generator(torch.randn(32, 8))
    for_discriminator.zero_grad()
    loss = criterion(discriminator(real), ones) + criterion(discriminator(fake.detach()), zeros)
    loss.backward()
    for_discriminator.step()
    for_generator.zero_grad()
    criterion(discriminator(fake), ones).backward()
    for_generator.step()
