"""Poisson regression on claims, with hooks for the phases of training."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ClaimModel(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.hidden = nn.Linear(features, 12)
        self.rate = nn.Linear(12, 1)

    def forward(self, x):
        return self.rate(torch.tanh(self.hidden(x))).squeeze(1)


class Training:
    def __init__(self, model, loader, lr):
        self.model, self.loader = model, loader
        self.criterion = nn.PoissonNLLLoss()
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)

    def on_epoch_start(self):
        self.model.train()
        self.optimizer.zero_grad()
        self.total = 0.0

    def on_batch(self, x, y):
        loss = self.criterion(self.model(x), y)
        loss.backward()
        self.optimizer.step()  # bug: TA602
        self.total += loss.item()

    def on_epoch_end(self, epoch):
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: {self.total / len(self.loader):.4f}")

    def run(self, epochs):
        for epoch in range(epochs):
            self.on_epoch_start()
            for x, y in self.loader:
                self.on_batch(x, y)
            self.on_epoch_end(epoch)


def claims(count, features=5):
    x = torch.randn(count, features)
    return TensorDataset(x, torch.poisson(torch.exp(0.6 * x[:, 0] - 0.4 * x[:, 1])))


if __name__ == "__main__":
    torch.manual_seed(80)
    loader = DataLoader(claims(400), batch_size=50, shuffle=True)
    Training(ClaimModel(5), loader, lr=0.02).run(epochs=30)
