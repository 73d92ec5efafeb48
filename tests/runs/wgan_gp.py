import torch
from torch import autograd, nn

torch.manual_seed(0)
dim = 64
netG = nn.Sequential(nn.Linear(2, dim), nn.ReLU(True), nn.Linear(dim, dim), nn.ReLU(True), nn.Linear(dim, 2))
netD = nn.Sequential(nn.Linear(2, dim), nn.ReLU(True), nn.Linear(dim, dim), nn.ReLU(True), nn.Linear(dim, 1))
optimizerD = torch.optim.Adam(netD.parameters(), lr=1e-4, betas=(0.5, 0.9))
optimizerG = torch.optim.Adam(netG.parameters(), lr=1e-4, betas=(0.5, 0.9))


def gradient_penalty(real, fake):
    alpha = torch.rand(len(real), 1).expand_as(real)
    between = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    scores = netD(between)
    gradients = autograd.grad(
        scores, between, grad_outputs=torch.ones_like(scores), create_graph=True, retain_graph=True
    )[0]
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean() * 0.1


for _iteration in range(60):
    for p in netD.parameters():
        p.requires_grad = True
    for _ in range(3):
        real = torch.randn(64, 2) * 0.1 + torch.randint(0, 2, (64, 2)) * 2 - 1
        netD.zero_grad()
        with torch.no_grad():
            fake = netG(torch.randn(64, 2))
        cost = netD(fake).mean() - netD(real).mean() + gradient_penalty(real, fake)
        cost.backward()
        optimizerD.step()
    for p in netD.parameters():
        p.requires_grad = False
    netG.zero_grad()
    G = -netD(netG(torch.randn(64, 2))).mean()
    G.backward()
    optimizerG.step()
