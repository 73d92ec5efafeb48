import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class FreezeAfterFirstEpoch(Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        if trainer.current_epoch == 0:
            for parameter in pl_module.stem.parameters():
                parameter.requires_grad = False


class CountSteps(Callback):
    def __init__(self):
        self.steps = 0

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.steps += 1

    def on_validation_epoch_end(self, trainer, pl_module):
        pl_module.probe(torch.zeros(1, 6))


class Regressor(LightningModule):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(6, 6)
        self.head = nn.Linear(6, 1)
        self.norms = []

    def probe(self, x):
        return self.head(self.stem(x))

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.smooth_l1_loss(self.probe(x), y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val", nn.functional.smooth_l1_loss(self.probe(x), y))

    def on_train_epoch_start(self):
        self.norms.clear()

    def on_before_optimizer_step(self, optimizer):
        norms = [p.grad.norm() for p in self.parameters() if p.grad is not None]
        self.norms.append(torch.stack(norms).norm())

    def configure_gradient_clipping(self, optimizer, gradient_clip_val, gradient_clip_algorithm):
        self.clip_gradients(optimizer, gradient_clip_val=1.0, gradient_clip_algorithm="norm")

    def configure_optimizers(self):
        optimizer = torch.optim.RMSprop(self.parameters(), lr=1e-3)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]


x = torch.randn(16, 6)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
trainer = Trainer(
    max_epochs=3,
    accelerator="cpu",
    callbacks=[FreezeAfterFirstEpoch(), CountSteps()],
    num_sanity_val_steps=0,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
)
trainer.fit(Regressor(), train_dataloaders=loader, val_dataloaders=loader)
