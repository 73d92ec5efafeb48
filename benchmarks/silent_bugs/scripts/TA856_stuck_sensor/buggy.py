"""Predicts the next value of a sensor from a window of earlier ones."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def recording(length=1200):
    time = torch.arange(length)
    values = torch.sin(0.17 * time) + 0.4 * torch.sin(0.045 * time + 1) + 0.05 * torch.randn(length)
    values[500:560] = values[500]
    return values


class Windows(Dataset):  # bug: TA856
    def __init__(self, values, size):
        self.values, self.size = values, size
        self.starts = list(range(len(values) - size))

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, index):
        start = self.starts[index]
        return self.values[start : start + self.size], self.values[start + self.size : start + self.size + 1]


class Network(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.conv = nn.Conv1d(1, 8, 3)
        self.rest = nn.Sequential(nn.ReLU(), nn.Flatten(), nn.Linear(8 * (size - 2), 1))

    def forward(self, x):
        return self.rest(self.conv(x.unsqueeze(1)))


def main(size=10):
    torch.manual_seed(34)
    loader = DataLoader(Windows(recording(), size), batch_size=32, shuffle=True)
    model = Network(size)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(3):
        losses = []
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}")


main()
