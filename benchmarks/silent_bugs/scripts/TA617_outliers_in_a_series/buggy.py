"""Next value of a sensor that fails now and then."""

import torch
from torch import nn


class SensorModel(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.lstm = nn.LSTM(2, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 2)

    def forward(self, readings):
        return self.head(self.lstm(readings)[0])


def readings(batch, length, step):
    time = torch.arange(length + 1) * 0.25 + 6.28 * torch.rand(batch, 1)
    clean = torch.stack([time.sin(), time.cos()], dim=2)
    values = clean + 0.05 * torch.randn_like(clean)
    if step % 71 == 70:
        values[: batch // 2, -1] *= 80.0
    return values[:, :-1], values[:, 1:]


def train(model, optimizer, steps, batch=24, length=20):
    criterion = nn.MSELoss()
    history = []
    for step in range(steps):
        inputs, targets = readings(batch, length, step)
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()  # bug: TA617
        history.append(loss.item())
        if (step + 1) % 40 == 0:
            middle = sorted(history[-40:])[20]
            print(f"step {step + 1}: median loss {middle:.4f}")


if __name__ == "__main__":
    torch.manual_seed(180)
    model = SensorModel()
    train(model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), steps=200)
