"""Semantic segmentation at half resolution, enlarged to full size for the loss."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Shapes(Dataset):
    def __init__(self, length, size=16):
        self.length, self.size = length, size

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        draw = torch.Generator().manual_seed(1000 + index)
        mask = torch.zeros(self.size, self.size, dtype=torch.long)
        for label in (1, 2):
            row, column = torch.randint(0, self.size - 6, (2,), generator=draw).tolist()
            mask[row : row + 6, column : column + 6] = label
        noise = 0.5 * torch.randn(2, self.size, self.size, generator=draw)
        return torch.stack([mask == 1, mask == 2]).float() * 2 - 0.3 + noise, mask


class Segmenter(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(2, 12, 3, padding=1),
            nn.ReLU(),
            nn.AvgPool2d(2),
            nn.Conv2d(12, 12, 3, padding=1),
            nn.ReLU(),
        )
        self.score = nn.Conv2d(12, classes, 1)
        self.softmax = nn.Softmax2d()

    def forward(self, x):
        maps = self.score(self.body(x))
        maps = self.softmax(maps)
        return F.interpolate(maps, size=x.shape[-2:], mode="bilinear", align_corners=False)


def train_one_epoch(model, loader, optimizer, weights):
    losses, sure = [], []
    for images, masks in loader:
        maps = model(images)
        loss = F.cross_entropy(maps, masks, weight=weights)  # bug: TA406
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        sure.append(maps.detach().amax(1).mean().item())
    return sum(losses) / len(losses), sum(sure) / len(sure)


def main():
    torch.manual_seed(8)
    model = Segmenter()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    weights = torch.tensor([0.5, 1.0, 1.0])
    loader = DataLoader(Shapes(320), batch_size=16, shuffle=True)
    for epoch in range(3):
        loss, sure = train_one_epoch(model, loader, optimizer, weights)
        print(f"epoch {epoch}: loss {loss:.3f}, mean confidence {sure:.2f}")


main()
