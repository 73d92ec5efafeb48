"""Tempting: manual optimization with two optimizers, toggles, a scheduler stepped by hand, and hooks without calls."""

import lightning as L
import torch
from torch import nn
from torch.nn import functional as F


class GAN(L.LightningModule):
    def __init__(self, width=32):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.generator = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 784))
        self.discriminator = nn.Sequential(nn.Linear(784, 64), nn.LeakyReLU(), nn.Linear(64, 1))
        self.validation_z = torch.randn(8, width)

    def forward(self, z):
        return self.generator(z)

    def training_step(self, batch):
        imgs, _ = batch
        optimizer_g, optimizer_d = self.optimizers()
        z = torch.randn(imgs.shape[0], self.hparams.width).type_as(imgs)
        valid = torch.ones(imgs.size(0), 1).type_as(imgs)
        self.toggle_optimizer(optimizer_g)
        g_loss = F.binary_cross_entropy_with_logits(self.discriminator(self(z)), valid)
        self.log("g_loss", g_loss, prog_bar=True)
        self.manual_backward(g_loss)
        optimizer_g.step()
        optimizer_g.zero_grad()
        self.untoggle_optimizer(optimizer_g)
        self.toggle_optimizer(optimizer_d)
        real = F.binary_cross_entropy_with_logits(self.discriminator(imgs.view(imgs.size(0), -1)), valid)
        fake = torch.zeros_like(valid)
        d_loss = (real + F.binary_cross_entropy_with_logits(self.discriminator(self(z).detach()), fake)) / 2
        self.manual_backward(d_loss)
        optimizer_d.step()
        optimizer_d.zero_grad()
        self.untoggle_optimizer(optimizer_d)
        if self.trainer.is_last_batch:
            self.lr_schedulers().step()

    def validation_step(self, batch, batch_idx):
        imgs, _ = batch
        self.log("val", self.discriminator(imgs.flatten(1)).sigmoid().mean())

    def configure_optimizers(self):
        opt_g = torch.optim.Adam(self.generator.parameters(), lr=2e-4)
        opt_d = torch.optim.Adam(self.discriminator.parameters(), lr=2e-4)
        return [opt_g, opt_d], [torch.optim.lr_scheduler.ExponentialLR(opt_g, 0.99)]

    def on_validation_epoch_end(self):
        z = self.validation_z.type_as(self.generator[0].weight)
        self.logger.experiment.add_images("generated", self(z), self.current_epoch)
