"""Tempting: `retain_graph`, two optimizers, gradients of the discriminator cleared late, `detach`, BCE on sigmoid."""

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
netG = nn.Sequential(nn.Linear(64, 128), nn.ReLU(True), nn.Linear(128, 784), nn.Tanh()).to(device)
netD = nn.Sequential(
    nn.Linear(784, 128), nn.LeakyReLU(0.2, inplace=True), nn.Linear(128, 1), nn.Sigmoid()
).to(device)
criterion = nn.BCELoss()
optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
fixed_noise = torch.randn(16, 64, device=device)
G_losses, D_losses, img_list = [], [], []


def train(dataloader, epochs):
    for epoch in range(epochs):
        for i, data in enumerate(dataloader, 0):
            netD.zero_grad()
            real = data[0].to(device)
            b_size = real.size(0)
            label = torch.full((b_size,), 1.0, dtype=torch.float, device=device)
            output = netD(real).view(-1)
            errD_real = criterion(output, label)
            errD_real.backward()
            D_x = output.mean().item()
            noise = torch.randn(b_size, 64, device=device)
            fake = netG(noise)
            label.fill_(0.0)
            output = netD(fake.detach()).view(-1)
            errD_fake = criterion(output, label)
            errD_fake.backward()
            errD = errD_real + errD_fake
            optimizerD.step()
            netG.zero_grad()
            label.fill_(1.0)
            output = netD(fake).view(-1)
            errG = criterion(output, label)
            errG.backward()
            optimizerG.step()
            if i % 50 == 0:
                print(epoch, i, errD.item(), errG.item(), D_x)
            G_losses.append(errG.item())
            D_losses.append(errD.item())
            if i % 500 == 0:
                with torch.no_grad():
                    img_list.append(netG(fixed_noise).detach().cpu())
