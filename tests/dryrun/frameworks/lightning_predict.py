import lightning as L
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class TwoRates(L.LightningModule):
    def __init__(self, lr=1e-2):
        super().__init__()
        self.lr = lr
        self.example_input_array = torch.zeros(1, 6)
        self.backbone = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU())
        self.head = nn.Linear(8, 1)
        self.loss_fn = nn.BCEWithLogitsLoss()

    def forward(self, x):
        return self.head(self.backbone(x)).squeeze(-1)

    def common_step(self, batch):
        x, y = batch
        return self.loss_fn(self(x), y)

    def training_step(self, batch, batch_idx):
        loss = self.common_step(batch)
        self.log("train/loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        loss = self.common_step(batch)
        self.log("val/loss", loss)
        return loss

    def predict_step(self, batch, batch_idx):
        x, _ = batch
        return torch.sigmoid(self(x))

    def configure_optimizers(self):
        optimizer = optim.Adam(
            [{"params": self.backbone.parameters(), "lr": self.lr * 0.1}, {"params": self.head.parameters()}],
            lr=self.lr,
        )
        scheduler = optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.95**step)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": scheduler, "interval": "step", "frequency": 1},
        }


L.seed_everything(7)
x = torch.randn(24, 6)
dataset = TensorDataset(x, (x[:, 0] > 0).float())
loaders = DataLoader(dataset, batch_size=6, shuffle=True), DataLoader(dataset, batch_size=12)
model = TwoRates()
trainer = L.Trainer(
    max_epochs=2,
    accelerator="cpu",
    precision="bf16-mixed",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, *loaders)
trainer.validate(model, loaders[1], verbose=False)
predictions = torch.cat(trainer.predict(model, loaders[1]))
print(predictions.shape)
