"""A small CNN on images that come as bytes."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __init__(self, count):
        generator = torch.Generator().manual_seed(0)
        self.images = torch.randint(256, (count, 3, 16, 16), dtype=torch.uint8, generator=generator)
        self.labels = torch.randint(4, (count,), generator=generator)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index].float(), self.labels[index]


def main():
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    for images, labels in DataLoader(Photos(320), batch_size=16, shuffle=True):
        scores = net(images)  # bug: TA301 (runtime)
        loss = nn.functional.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
