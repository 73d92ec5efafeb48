import torch
import torch.nn.functional as F
from lightning.fabric import Fabric, seed_everything
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.dropout(F.relu(self.body(x))))


@torch.no_grad()
def validate(fabric, model, loader):
    model.eval()
    correct = 0
    for x, y in loader:
        correct += (model(x).argmax(-1) == y).sum()
    fabric.print("accuracy", correct)
    model.train()


def main():
    fabric = Fabric(accelerator="cpu", devices=1)
    seed_everything(0)
    fabric.launch()
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model, optimizer = fabric.setup(model, optimizer)
    data = TensorDataset(torch.randn(32, 4), torch.randint(0, 3, (32,)))
    train_loader, val_loader = fabric.setup_dataloaders(
        DataLoader(data, batch_size=4), DataLoader(data, batch_size=16)
    )
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for epoch in range(2):
        for step, (x, y) in enumerate(train_loader):
            accumulating = step % 2 == 0
            with fabric.no_backward_sync(model, enabled=accumulating):
                loss = F.cross_entropy(model(x), y)
                fabric.backward(loss)
            if not accumulating:
                fabric.clip_gradients(model, optimizer, max_norm=1.0)
                optimizer.step()
                optimizer.zero_grad()
        scheduler.step()
        validate(fabric, model, val_loader)
    fabric.save("checkpoint.pt", {"model": model})


if __name__ == "__main__":
    main()
