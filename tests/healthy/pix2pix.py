"""Tempting: the discriminator is frozen by hand around the generator's step, and the same loss object serves both."""

import itertools

import torch
from torch import nn


class CycleModel:
    def __init__(self, G_A, G_B, D_A, D_B, lr):
        self.netG_A, self.netG_B, self.netD_A, self.netD_B = G_A, G_B, D_A, D_B
        self.criterionGAN = nn.MSELoss()
        self.criterionCycle = nn.L1Loss()
        self.optimizer_G = torch.optim.Adam(itertools.chain(G_A.parameters(), G_B.parameters()), lr=lr)
        self.optimizer_D = torch.optim.Adam(itertools.chain(D_A.parameters(), D_B.parameters()), lr=lr)
        self.optimizers = [self.optimizer_G, self.optimizer_D]
        self.schedulers = [torch.optim.lr_scheduler.StepLR(o, 50) for o in self.optimizers]

    def set_requires_grad(self, nets, requires_grad=False):
        for net in nets:
            for param in net.parameters():
                param.requires_grad = requires_grad

    def forward(self):
        self.fake_B = self.netG_A(self.real_A)
        self.rec_A = self.netG_B(self.fake_B)

    def backward_D_basic(self, netD, real, fake):
        pred_real = netD(real)
        loss_real = self.criterionGAN(pred_real, torch.ones_like(pred_real))
        pred_fake = netD(fake.detach())
        loss_fake = self.criterionGAN(pred_fake, torch.zeros_like(pred_fake))
        loss_D = (loss_real + loss_fake) * 0.5
        loss_D.backward()
        return loss_D

    def backward_G(self):
        pred = self.netD_A(self.fake_B)
        self.loss_G = self.criterionGAN(pred, torch.ones_like(pred))
        self.loss_G = self.loss_G + self.criterionCycle(self.rec_A, self.real_A) * 10.0
        self.loss_G.backward()

    def optimize_parameters(self):
        self.forward()
        self.set_requires_grad([self.netD_A, self.netD_B], False)
        self.optimizer_G.zero_grad()
        self.backward_G()
        self.optimizer_G.step()
        self.set_requires_grad([self.netD_A, self.netD_B], True)
        self.optimizer_D.zero_grad()
        self.loss_D_A = self.backward_D_basic(self.netD_A, self.real_B, self.fake_B)
        self.optimizer_D.step()

    def update_learning_rate(self):
        for scheduler in self.schedulers:
            scheduler.step()

    def train(self, loader, epochs):
        for epoch in range(epochs):
            for batch in loader:
                self.real_A, self.real_B = batch["A"], batch["B"]
                self.optimize_parameters()
            self.update_learning_rate()
