"""
python examples/runtime/lightning_run.py

Classifies sensor traces under Lightning: the training loop is in a library, and the findings are still in this file.
Under fifteen seconds on one CPU core; needs torch and lightning.
"""

import lightning
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import ta_runtime

ta_runtime.enable(every_n_steps=20)

lightning.seed_everything(0, verbose=False)


def record(n, length=64):
    """n traces [n, 1, length] of three kinds, and which kind each is."""
    kind = torch.randint(3, (n,))
    time = torch.linspace(0, 6.28, length)
    phase = 6.28 * torch.rand(n, 1)
    wave = torch.sin((kind[:, None] + 1) * time + phase)
    return (wave + 0.5 * torch.randn(n, length)).unsqueeze(1), kind


class Traces(lightning.LightningModule):
    def __init__(self, width=16):
        super().__init__()
        self.stem = nn.Conv1d(1, width, kernel_size=5, padding=2, bias=False)
        self.norm = nn.BatchNorm1d(width)
        self.mix = nn.Conv1d(width, width, kernel_size=5, padding=2)
        self.wide = nn.Conv1d(width, width, kernel_size=5, padding=8, dilation=4)  # runtime: TA500
        self.head = nn.Linear(width, 3)
        self.loss_sum, self.count = 0.0, 0

    def forward(self, traces):
        hidden = F.relu(self.norm(self.stem(traces)))
        # cured: hidden = F.relu(self.wide(F.relu(self.mix(hidden))))
        hidden = F.relu(self.mix(hidden))
        return self.head(hidden.mean(dim=-1))

    def training_step(self, batch, index):
        traces, kinds = batch
        loss = F.cross_entropy(self(traces), kinds)
        self.loss_sum, self.count = self.loss_sum + loss.item(), self.count + 1
        return loss

    def on_train_epoch_end(self):
        print(f"epoch {self.current_epoch}: loss {self.loss_sum / self.count:.4f}")
        self.loss_sum, self.count = 0.0, 0

    def configure_optimizers(self):
        # cured: options = {"lr": 5e-3}
        options = {"lr": 5e-3, "weight_decay": 0.01}
        return torch.optim.Adam(self.parameters(), **options)  # static: TA401  # runtime: TA401


train_loader = DataLoader(TensorDataset(*record(1024)), batch_size=32, shuffle=True)
model = Traces()
trainer = lightning.Trainer(
    max_epochs=4,
    accelerator="cpu",
    gradient_clip_val=1.0,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, train_loader)

traces, kinds = record(512)
model.eval()
with torch.no_grad():
    print(f"test accuracy {(model(traces).argmax(dim=-1) == kinds).float().mean():.3f}")
