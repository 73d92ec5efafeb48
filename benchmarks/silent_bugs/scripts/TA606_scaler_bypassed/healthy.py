"""A trainer with mixed precision."""

import torch
from torch import nn


class Trainer:
    def __init__(self, model, lr=1e-4):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=256.0)

    def step(self, x, y):
        self.optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.mse_loss(self.model(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item()

    def fit(self, steps):
        for _ in range(steps):
            x = torch.randn(32, 4)
            loss = self.step(x, x.mean(dim=1, keepdim=True))
        return loss


def main():
    torch.manual_seed(0)
    print(Trainer(nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))).fit(30))


if __name__ == "__main__":
    main()
