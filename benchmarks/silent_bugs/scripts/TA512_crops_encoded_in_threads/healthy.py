"""Several crops of an image, each encoded in a thread of its own."""

from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, stride=2, padding=1)

    def forward(self, crop):
        return F.relu(self.conv2(F.relu(self.conv1(crop)))).mean((2, 3))


class MultiCrop(nn.Module):
    def __init__(self, crops=2, width=12, classes=3):
        super().__init__()
        self.encoders = nn.ModuleList(Encoder(width) for _ in range(crops))
        self.mix = nn.Linear(crops * width, 24)
        self.head = nn.Linear(24, classes)
        self.pool = ThreadPoolExecutor(crops)

    def encode(self, encoder, crop):
        with torch.autocast("cpu", torch.bfloat16):
            return encoder(crop)

    def forward(self, images):
        crops = images.chunk(len(self.encoders), dim=3)
        parts = list(self.pool.map(self.encode, self.encoders, crops))
        return self.head(F.relu(self.mix(torch.cat(parts, dim=1))))


def make_data(count):
    labels = torch.randint(3, (count,))
    tint = torch.eye(3)[labels][:, :, None, None]
    return TensorDataset(torch.randn(count, 3, 16, 32) + 0.5 * tint, labels)


def main():
    torch.manual_seed(33)
    loader = DataLoader(make_data(512), batch_size=32, shuffle=True)
    model = MultiCrop()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(4):
        total = 0.0
        for images, labels in loader:
            with torch.autocast("cpu", torch.bfloat16):
                logits = model(images)
            loss = F.cross_entropy(logits.float(), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.4f}")
    model.pool.shutdown()


if __name__ == "__main__":
    main()
