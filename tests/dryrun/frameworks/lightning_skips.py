import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Skipping(pl.LightningModule):
    """Batches whose loss is not finite are left out."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4, batch_first=True)
        self.out = nn.Linear(4, 1)

    def forward(self, x):
        states, (h, c) = self.lstm(x)
        return self.out(states[:, -1])

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.mse_loss(self(x).squeeze(-1), y)
        if not torch.isfinite(loss):
            return None
        return loss

    def on_train_batch_start(self, batch, batch_idx):
        if batch_idx >= 5:
            return -1

    def configure_optimizers(self):
        optimizer = torch.optim.Adagrad(self.parameters(), lr=0.1)
        return {
            "optimizer": optimizer,
            "lr_scheduler": torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9),
        }


if __name__ == "__main__":
    pl.seed_everything(1)
    y = torch.randn(32)
    y[3] = float("inf")
    data = TensorDataset(torch.randn(32, 7, 3), y)
    trainer = pl.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
    )
    trainer.fit(Skipping(), DataLoader(data, batch_size=4))
