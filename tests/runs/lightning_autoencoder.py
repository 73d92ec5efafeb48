# as in Lightning's own examples
import lightning as L
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, random_split


class LitAutoEncoder(L.LightningModule):
    def __init__(self, hidden_dim=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(784, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, 3))
        self.decoder = nn.Sequential(nn.Linear(3, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, 784))

    def forward(self, x):
        return self.decoder(self.encoder(x.view(x.size(0), -1)))

    def training_step(self, batch, batch_idx):
        return self._common_step(batch, "train")

    def validation_step(self, batch, batch_idx):
        self._common_step(batch, "val")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)

    def _common_step(self, x, stage):
        loss = F.mse_loss(self(x), x.view(x.size(0), -1))
        self.log(f"{stage}_loss", loss, on_step=True)
        return loss


L.seed_everything(0)
train, validation = random_split(torch.rand(512, 1, 28, 28) ** 4, [384, 128])
trainer = L.Trainer(
    max_epochs=5, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    accelerator="cpu",
)  # fmt: skip
trainer.fit(
    LitAutoEncoder(), DataLoader(train, batch_size=32, shuffle=True), DataLoader(validation, batch_size=32)
)
