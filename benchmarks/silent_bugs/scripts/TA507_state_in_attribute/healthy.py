"""Forecast of a long series, read in windows from left to right."""

import torch
from torch import nn


class Forecaster(nn.Module):
    def __init__(self, hidden=20):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.readout = nn.Linear(hidden, 1)
        self.memory = None

    def reset(self):
        self.memory = None

    def forward(self, window):
        output, memory = self.lstm(window, self.memory)
        self.memory = tuple(part.detach() for part in memory)
        return self.readout(output)


def series(batch, length):
    time = torch.arange(length) * 0.2
    phase = torch.rand(batch, 1) * 6.28
    return (torch.sin(time + phase) + 0.3 * torch.sin(2.7 * time + phase)).unsqueeze(-1)


def train(model, optimizer, criterion, data, window):
    model.reset()
    losses = []
    for start in range(0, data.shape[1] - window, window):
        inputs = data[:, start : start + window]
        targets = data[:, start + 1 : start + window + 1]
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def main():
    torch.manual_seed(6)
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(5):
        print(f"epoch {epoch}: mse {train(model, optimizer, nn.MSELoss(), series(16, 241), 20):.4f}")


if __name__ == "__main__":
    main()
