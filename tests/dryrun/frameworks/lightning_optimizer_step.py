import torch
from lightning import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class WarmUp(LightningModule):
    def __init__(self, warmup: int = 4):
        super().__init__()
        self.warmup = warmup
        self.layers = nn.ModuleList([nn.Linear(5, 5) for _ in range(3)])
        self.output = nn.Linear(5, 2)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x)) + x
        return self.output(x)

    def training_step(self, batch, batch_idx):
        inputs, target = batch
        out = self(inputs)
        losses = {"ce": nn.functional.cross_entropy(out, target), "l2": 1e-3 * out.pow(2).mean()}
        return {"loss": sum(losses.values()), "log": losses}

    def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure):
        optimizer.step(closure=optimizer_closure)
        if self.trainer.global_step < self.warmup:
            scale = min(1.0, float(self.trainer.global_step + 1) / self.warmup)
            for group in optimizer.param_groups:
                group["lr"] = scale * 0.01

    def optimizer_zero_grad(self, epoch, batch_idx, optimizer):
        optimizer.zero_grad(set_to_none=True)

    def configure_optimizers(self):
        decay = [p for p in self.parameters() if p.ndim >= 2]
        rest = [p for p in self.parameters() if p.ndim < 2]
        groups = [{"params": decay, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, lr=0.01)


def run():
    data = TensorDataset(torch.randn(24, 5), torch.randint(0, 2, (24,)))
    trainer = Trainer(max_steps=6, accelerator="cpu", barebones=True)
    trainer.fit(WarmUp(), DataLoader(data, batch_size=4))


run()
