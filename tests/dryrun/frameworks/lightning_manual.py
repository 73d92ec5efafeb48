import lightning.pytorch as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ManualAccumulation(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.encoder = nn.Linear(8, 4)
        self.decoder = nn.Linear(4, 8)

    def forward(self, x):
        return self.decoder(torch.tanh(self.encoder(x)))

    def training_step(self, batch, batch_idx):
        opt = self.optimizers()
        x = batch[0]
        loss = ((self(x) - x) ** 2).mean() / 2
        self.manual_backward(loss)
        if (batch_idx + 1) % 2 == 0:
            self.clip_gradients(opt, gradient_clip_val=0.5, gradient_clip_algorithm="norm")
            opt.step()
            opt.zero_grad()

    def on_train_epoch_end(self):
        sch = self.lr_schedulers()
        sch.step()

    def validation_step(self, batch, batch_idx):
        x = batch[0]
        self.log("val_loss", ((self(x) - x) ** 2).mean())

    def configure_optimizers(self):
        optimizer = torch.optim.SGD([*self.encoder.parameters(), *self.decoder.parameters()], lr=0.1)
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)]

    def train_dataloader(self):
        return DataLoader(TensorDataset(torch.randn(32, 8)), batch_size=8)

    def val_dataloader(self):
        return DataLoader(TensorDataset(torch.randn(8, 8)), batch_size=8)


model = ManualAccumulation()
trainer = pl.Trainer(
    max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
)
trainer.fit(model)
trainer.validate(model)
