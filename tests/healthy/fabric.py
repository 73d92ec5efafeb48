"""Tempting: `fabric.setup`, backward by the fabric, clipping by the fabric, no devices anywhere."""

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, x):
        return self.body(x).log_softmax(dim=1)


def train():
    fabric = L.Fabric(accelerator="auto", devices=1)
    fabric.launch()
    fabric.seed_everything(1)
    dataset = TensorDataset(torch.randn(256, 16), torch.randint(0, 4, (256,)))
    loader = fabric.setup_dataloaders(DataLoader(dataset, batch_size=32, shuffle=True))
    model = Classifier()
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    model, optimizer = fabric.setup(model, optimizer)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
    for epoch in range(5):
        model.train()
        for index, (data, target) in enumerate(loader):
            is_accumulating = index % 4 != 3
            with fabric.no_backward_sync(model, enabled=is_accumulating):
                loss = nn.functional.nll_loss(model(data), target)
                fabric.backward(loss / 4)
            if not is_accumulating:
                fabric.clip_gradients(model, optimizer, max_norm=1.0)
                optimizer.step()
                optimizer.zero_grad()
            if index % 10 == 0:
                fabric.print(epoch, loss.item())
        scheduler.step()


train()
