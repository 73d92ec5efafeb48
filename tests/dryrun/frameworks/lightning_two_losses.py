import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class BaseTask(LightningModule):
    """What tasks share: the optimizer, and what is logged."""

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.trainable(), lr=self.learning_rate)
        milestones = [2]
        scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones, gamma=0.1)
        return [optimizer], [scheduler]

    def trainable(self):
        return self.parameters()

    def training_step(self, batch, batch_idx):
        losses = self.losses(batch)
        total = torch.stack(list(losses.values())).sum()
        for name, value in losses.items():
            self.log(name, value.detach())
        return total

    def losses(self, batch):
        raise NotImplementedError


class Multi(BaseTask):
    learning_rate = 1e-2

    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(4, 4)
        self.tasks = nn.ModuleDict({"a": nn.Linear(4, 1), "b": nn.Linear(4, 1)})
        self.unused = nn.Linear(2, 2)

    def losses(self, batch):
        hidden = torch.relu(self.shared(batch[0]))
        return {name: (head(hidden) - batch[1]).abs().mean() for name, head in self.tasks.items()}


data = DataLoader(TensorDataset(torch.randn(12, 4), torch.randn(12, 1)), batch_size=4)
trainer = Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False)
trainer.fit(Multi(), data)
