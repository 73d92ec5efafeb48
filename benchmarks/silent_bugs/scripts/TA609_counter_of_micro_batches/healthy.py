"""Small vision transformer with gradients summed up over micro-batches."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class TrainConfig:
    epochs: int = 5
    micro_batch: int = 8
    accumulate: int = 4
    lr: float = 0.02
    width: int = 16


class PatchTransformer(nn.Module):
    def __init__(self, width, classes=4):
        super().__init__()
        self.patch = nn.Linear(16, width)
        self.place = nn.Parameter(0.1 * torch.randn(4, width))
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        patches = F.unfold(images, kernel_size=4, stride=4).mT
        x = self.patch(patches) + self.place
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return self.head(torch.relu(x).mean(1))


def corners(count):
    labels = torch.randint(4, (count,))
    images = 0.5 * torch.randn(count, 1, 8, 8)
    for image, label in zip(images, labels):
        row, column = divmod(int(label), 2)
        image[:, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4] += 1
    return TensorDataset(images, labels)


def main(config):
    torch.manual_seed(121)
    loader = DataLoader(corners(512), batch_size=config.micro_batch, shuffle=True)
    model = PatchTransformer(config.width)
    optimizer = torch.optim.SGD(model.parameters(), lr=config.lr, momentum=0.9)
    for epoch in range(config.epochs):
        total, collected = 0.0, 0
        for number, (images, labels) in enumerate(loader, start=1):
            loss = F.cross_entropy(model(images), labels)
            (loss / config.accumulate).backward()
            collected += 1
            total += loss.item()
            if collected == config.accumulate or number == len(loader):
                optimizer.step()
                optimizer.zero_grad()
                collected = 0
        print(f"epoch {epoch}: {total / len(loader):.4f}")


if __name__ == "__main__":
    main(TrainConfig())
