"""The DCGAN tutorial with its loader: two backward passes of the discriminator, fixed noise, samples in train mode."""

import torch
from torch import nn

torch.manual_seed(0)


def weights_init(m):
    n = m.__class__.__name__
    if n.find("Conv") != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.02)
    elif n.find("BatchNorm") != -1:
        nn.init.normal_(m.weight.data, 1.0, 0.02)
        nn.init.constant_(m.bias.data, 0)


netG = nn.Sequential(
    nn.ConvTranspose2d(16, 32, 4, 1, 0, bias=False),
    nn.BatchNorm2d(32),
    nn.ReLU(True),
    nn.ConvTranspose2d(32, 16, 4, 2, 1, bias=False),
    nn.BatchNorm2d(16),
    nn.ReLU(True),
    nn.ConvTranspose2d(16, 3, 4, 2, 1, bias=False),
    nn.Tanh(),
)
netD = nn.Sequential(
    nn.Conv2d(3, 16, 4, 2, 1, bias=False),
    nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(16, 32, 4, 2, 1, bias=False),
    nn.BatchNorm2d(32),
    nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(32, 1, 4, 1, 0, bias=False),
    nn.Sigmoid(),
)
netG.apply(weights_init)
netD.apply(weights_init)
criterion = nn.BCELoss()
fixed_noise = torch.randn(16, 16, 1, 1)
optD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
optG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
img_list, G_losses, D_losses = [], [], []
dataset = torch.utils.data.TensorDataset(
    (torch.randn(160, 3, 16, 16) * 0.2 + torch.randn(160, 3, 1, 1) * 0.4).clamp(-1, 1)
)
loader = torch.utils.data.DataLoader(dataset, batch_size=16, shuffle=True)
for it, (real,) in enumerate(batch for _ in range(4) for batch in loader):
    netD.zero_grad()
    label = torch.full((16,), 1.0)
    output = netD(real).view(-1)
    errD_real = criterion(output, label)
    errD_real.backward()
    noise = torch.randn(16, 16, 1, 1)
    fake = netG(noise)
    label.fill_(0.0)
    output = netD(fake.detach()).view(-1)
    errD_fake = criterion(output, label)
    errD_fake.backward()
    errD = errD_real + errD_fake
    optD.step()
    netG.zero_grad()
    label.fill_(1.0)
    output = netD(fake).view(-1)
    errG = criterion(output, label)
    errG.backward()
    optG.step()
    G_losses.append(errG.item())
    D_losses.append(errD.item())
    if it % 20 == 0:
        with torch.no_grad():
            fake = netG(fixed_noise).detach().cpu()
        img_list.append(fake)
