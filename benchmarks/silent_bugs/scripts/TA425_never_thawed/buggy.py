"""Trains the head of a sequence model first and the recurrent part from the second epoch on."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Steps(Dataset):
    def __init__(self, count, length=9):
        self.x = torch.randn(count, length, 2)
        self.y = self.x[:, :, 0].cumsum(1).amax(1) / 3

    def __len__(self):
        return len(self.y)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


class Forecaster(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.recurrent = nn.GRU(2, width, batch_first=True)
        self.head = nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x):
        _, last = self.recurrent(x)
        return self.head(last[-1]).squeeze(-1)


class GradualTraining:
    def __init__(self, model, thaw_at):
        self.model, self.thaw_at = model, thaw_at
        self.optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
        self.model.recurrent.requires_grad_(False)

    def begin_epoch(self, epoch):
        if epoch == self.thaw_at:
            self.model.recurrent.requires_grad = True  # bug: TA425

    def run(self, loader, epochs):
        for epoch in range(epochs):
            self.begin_epoch(epoch)
            losses = []
            for x, y in loader:
                loss = nn.functional.mse_loss(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                losses.append(loss.item())
            print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}")


def main():
    torch.manual_seed(66)
    loader = DataLoader(Steps(1024), batch_size=32, shuffle=True)
    GradualTraining(Forecaster(), thaw_at=1).run(loader, epochs=4)


if __name__ == "__main__":
    main()
