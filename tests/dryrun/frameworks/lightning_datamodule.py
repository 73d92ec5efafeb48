import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class Blobs(pl.LightningDataModule):
    def __init__(self, batch_size: int = 8):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        x = torch.randn(60, 4)
        y = (x.sum(1) > 0).long()
        self.train_set, self.val_set, self.test_set = random_split(TensorDataset(x, y), [40, 10, 10])

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=self.batch_size)

    def test_dataloader(self):
        return DataLoader(self.test_set, batch_size=self.batch_size)


class Classifier(pl.LightningModule):
    def __init__(self, hidden: int = 16, learning_rate: float = 1e-2):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Linear(4, self.hparams.hidden),
            nn.BatchNorm1d(self.hparams.hidden),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(self.hparams.hidden, 2),
        )
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, x):
        return self.net(x)

    def _shared_step(self, batch, stage):
        x, y = batch
        logits = self(x)
        loss = self.criterion(logits, y)
        accuracy = (logits.argmax(1) == y).float().mean()
        self.log_dict({f"{stage}_loss": loss, f"{stage}_accuracy": accuracy}, prog_bar=True)
        return loss

    def training_step(self, batch, batch_idx):
        return self._shared_step(batch, "train")

    def validation_step(self, batch, batch_idx):
        self._shared_step(batch, "val")

    def test_step(self, batch, batch_idx):
        self._shared_step(batch, "test")

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=self.hparams.learning_rate, momentum=0.9)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "monitor": "val_loss"}}


def main():
    pl.seed_everything(0)
    data = Blobs()
    model = Classifier(hidden=8)
    callbacks = [
        EarlyStopping(monitor="val_loss", patience=3),
        ModelCheckpoint(monitor="val_loss"),
        LearningRateMonitor(),
    ]
    trainer = pl.Trainer(
        max_epochs=3, accelerator="cpu", callbacks=callbacks, enable_progress_bar=False, log_every_n_steps=1
    )
    trainer.fit(model, datamodule=data)
    trainer.test(model, datamodule=data)


if __name__ == "__main__":
    main()
