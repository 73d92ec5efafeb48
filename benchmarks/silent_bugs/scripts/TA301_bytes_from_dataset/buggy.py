"""Sorts byte images of blobs by their number, from an array as a camera writes it."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def camera(n, seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 5, n)
    frames = rng.integers(0, 90, (n, 24, 24, 3), dtype=np.uint8)
    for frame, count in zip(frames, counts):
        for _ in range(count):
            row, column = rng.integers(0, 20, 2)
            frame[row : row + 4, column : column + 4] = rng.integers(190, 256, 3)
    return frames, counts - 1


class Frames(Dataset):
    def __init__(self, n, seed):
        self.frames, self.labels = camera(n, seed)
        self.mean, self.spread = float(self.frames.mean()), float(self.frames.std())

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, index):
        image = torch.from_numpy(self.frames[index]).permute(2, 0, 1).float()
        return image, int(self.labels[index])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 12, 5, stride=2, padding=2),
            nn.LeakyReLU(0.1),
            nn.Conv2d(12, 24, 3, stride=2, padding=1),
            nn.LeakyReLU(0.1),
        )
        self.classifier = nn.Linear(24, 4)

    def forward(self, image):
        return self.classifier(self.features(image).mean((2, 3)))


def main():
    torch.manual_seed(34)
    loader = DataLoader(Frames(640, seed=34), batch_size=32, shuffle=True)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(4):
        total = 0.0
        for image, label in loader:
            scores = net(image)  # bug: TA301 (runtime)
            loss = nn.functional.cross_entropy(scores, label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total / len(loader))


main()
