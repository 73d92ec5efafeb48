"""
python examples/healthy.py

The same kind of script with nothing wrong in it: a linter should be silent here. It does, correctly, much
that a careless reader would take for a bug: gradients cleared after the step, a step only every few batches,
log-probabilities into NLLLoss, a copied best state, Adam without weight decay, layers in an nn.ModuleList.
Under ten seconds on one CPU core; needs torch alone.
"""

import copy
import tempfile
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

epochs, batch_size, accumulate, lr = 5, 32, 2, 2e-3


class Spirals(Dataset):
    """Points on three interleaved spirals, jittered anew each time one is read when `augment` is set."""

    def __init__(self, n, augment=False):
        self.labels = torch.arange(n) % 3
        radius = torch.rand(n).sqrt()
        angle = 4 * radius + self.labels * (2 * torch.pi / 3) + 0.1 * torch.randn(n)
        self.points = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
        self.augment = augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        point = self.points[i]
        if self.augment:
            point = point + 0.02 * torch.randn(2)
        return point, self.labels[i]


class Net(nn.Module):
    def __init__(self, width=64, depth=3, classes=3):
        super().__init__()
        self.stem = nn.Linear(2, width)
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.dropout = nn.Dropout(0.05)
        self.head = nn.Linear(width, classes)
        self.widths = [
            layer.out_features for layer in self.layers
        ]  # numbers, not modules: a plain list is right

    def forward(self, x):
        x = F.gelu(self.stem(x))
        for layer in self.layers:
            x = x + self.dropout(F.gelu(layer(x)))
        return F.log_softmax(self.head(x), dim=-1)


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hits = sum((model(x).argmax(dim=-1) == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


def train(model, train_loader, val_loader):
    criterion = nn.NLLLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    best_accuracy, best_state = 0.0, copy.deepcopy(model.state_dict())
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for i, (points, labels) in enumerate(train_loader):
            loss = criterion(model(points), labels)
            (loss / accumulate).backward()
            if (i + 1) % accumulate == 0 or i + 1 == len(train_loader):
                optimizer.step()
                optimizer.zero_grad()
            total += loss.item()
        scheduler.step()
        val_accuracy = accuracy(model, val_loader)
        if val_accuracy > best_accuracy:
            best_accuracy = val_accuracy
            best_state = copy.deepcopy(model.state_dict())
        print(f"epoch {epoch}: loss {total / len(train_loader):.4f}, val accuracy {val_accuracy:.3f}")
    model.load_state_dict(best_state)
    return best_accuracy


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(
        Spirals(4096, augment=True),
        batch_size=batch_size,
        shuffle=True,
        num_workers=2,
        persistent_workers=True,
    )
    val_loader = DataLoader(Spirals(1000), batch_size=250, num_workers=1, persistent_workers=True)
    model = Net()
    print(f"hidden widths {model.widths}, {sum(p.numel() for p in model.parameters())} parameters")
    best_accuracy = train(model, train_loader, val_loader)
    print(f"best val accuracy {best_accuracy:.3f}, restored model: {accuracy(model, val_loader):.3f}")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pt"
        torch.save(model.state_dict(), path)
        reloaded = Net()
        reloaded.load_state_dict(torch.load(path, weights_only=True))
    print(f"saved and loaded again: {accuracy(reloaded, val_loader):.3f}")


if __name__ == "__main__":
    main()
