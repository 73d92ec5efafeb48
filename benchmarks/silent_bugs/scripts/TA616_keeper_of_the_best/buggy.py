"""Regression on few samples, restored to its best validation."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class BestKeeper:
    def __init__(self):
        self.record = {"score": float("inf"), "epoch": -1, "weights": None}

    def offer(self, score, epoch, model):
        if score < self.record["score"]:
            self.record = {"score": score, "epoch": epoch, "weights": model.state_dict()}  # bug: TA616

    def restore(self, model):
        model.load_state_dict(self.record["weights"])
        return self.record["epoch"], self.record["score"]


def friedman(count):
    x = torch.rand(count, 8) - 0.5
    y = torch.sin(3 * x[:, :1] * x[:, 1:2]) + 2 * x[:, 2:3].square() + x[:, 3:4] + 0.3 * torch.randn(count, 1)
    return TensorDataset(x, y)


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        return sum(nn.functional.mse_loss(model(x), y).item() for x, y in loader) / len(loader)


def train(model, loader, optimizer):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def main(epochs=40):
    torch.manual_seed(170)
    train_loader = DataLoader(friedman(120), batch_size=24, shuffle=True)
    valid_loader = DataLoader(friedman(200), batch_size=50)
    model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    keeper = BestKeeper()
    for epoch in range(epochs):
        loss = train(model, train_loader, optimizer)
        score = evaluate(model, valid_loader)
        keeper.offer(score, epoch, model)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: train {loss:.4f}, valid {score:.4f}")
    best_epoch, best_score = keeper.restore(model)
    print(
        f"best {best_score:.4f} at epoch {best_epoch}; restored model has {evaluate(model, valid_loader):.4f}"
    )


if __name__ == "__main__":
    main()
