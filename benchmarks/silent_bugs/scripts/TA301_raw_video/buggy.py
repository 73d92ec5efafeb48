"""Tells the direction of motion in short byte clips with a 3-d convolution."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def clips(n, frames=6, size=14):
    direction = torch.randint(4, (n,))
    video = torch.randint(0, 120, (n, 1, frames, size, size), dtype=torch.uint8)
    dr = torch.tensor([1, -1, 0, 0])[direction]
    dc = torch.tensor([0, 0, 1, -1])[direction]
    row, column = torch.randint(5, 8, (2, n))
    for t in range(frames):
        for i in range(n):
            r, c = int(row[i] + (t - 3) * dr[i]), int(column[i] + (t - 3) * dc[i])
            video[i, 0, t, r : r + 2, c : c + 2] = 255
    return TensorDataset(video, direction)


class Motion(nn.Module):
    def __init__(self, width=10):
        super().__init__()
        self.spot = nn.Conv3d(1, width, (3, 5, 5), padding=(1, 2, 2))
        self.head = nn.Sequential(
            nn.Flatten(2),
            nn.Linear(6 * 14 * 14, 16),
            nn.Flatten(),
            nn.Linear(16 * width, 4),
        )

    def forward(self, video):
        return self.head(torch.relu(self.spot(video)))


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        hits = [(model(v.float()).argmax(1) == d).float().sum().item() for v, d in loader]
    return sum(hits) / len(loader.dataset)


def fit(model, loader, optimizer):
    model.train()
    for video, direction in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(video.float()), direction)  # bug: TA301 (runtime)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()


if __name__ == "__main__":
    torch.manual_seed(35)
    train_loader = DataLoader(clips(480), batch_size=24, shuffle=True)
    valid_loader = DataLoader(clips(96), batch_size=48)
    model = Motion()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=5e-3)
    for epoch in range(4):
        fit(model, train_loader, optimizer)
        print(epoch, accuracy(model, valid_loader))
