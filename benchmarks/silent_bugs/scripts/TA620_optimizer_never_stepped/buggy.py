import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.9))
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))  # bug: TA620
criterion = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)


def critic_update(real, fake):
    critic_optimizer.zero_grad()
    loss = criterion(critic(real), ones) + criterion(critic(fake.detach()), zeros)
    loss.backward()
    return loss.item()


def generator_update(fake):
    generator_optimizer.zero_grad()
    loss = criterion(critic(fake), ones)
    loss.backward()
    generator_optimizer.step()
    return loss.item()


for step in range(80):
    angle = 6.28 * torch.rand(32)
    real = torch.stack([angle.cos(), angle.sin()], 1)
    fake = generator(torch.randn(32, 4))
    critic_loss, generator_loss = critic_update(real, fake), generator_update(fake)
    if step % 20 == 0:
        print(f"{step}: critic {critic_loss:.3f}, generator {generator_loss:.3f}")
