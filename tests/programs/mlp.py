"""A classifier on tabular data: evaluation between the epochs, a scheduler, and the best model is kept."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def evaluate(model, loader):
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in loader:
            right += (model(x).argmax(dim=1) == y).sum().item()
    return right / len(loader.dataset)


def main(seed=0, batch_size=16):
    torch.manual_seed(seed)
    x = torch.randn(200, 8)
    y = (x[:, 0] + x[:, 1] > 0).long()
    train_loader = DataLoader(TensorDataset(x[:150], y[:150]), batch_size=batch_size, shuffle=True)
    test_loader = DataLoader(TensorDataset(x[150:], y[150:]), batch_size=batch_size)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
    criterion = nn.CrossEntropyLoss()
    best = 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "best.pt"
        for _epoch in range(4):
            model.train()
            for inputs, targets in train_loader:
                optimizer.zero_grad()
                loss = criterion(model(inputs), targets)
                loss.backward()
                optimizer.step()
            scheduler.step()
            accuracy = evaluate(model, test_loader)
            if accuracy > best:
                best = accuracy
                torch.save(model.state_dict(), path)
        model.load_state_dict(torch.load(path, weights_only=True))
    return evaluate(model, test_loader)


if __name__ == "__main__":
    print(main(*map(int, sys.argv[1:])))
