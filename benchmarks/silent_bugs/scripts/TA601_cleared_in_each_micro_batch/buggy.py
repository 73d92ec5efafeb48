"""Segmentation of discs with an effective batch that is larger than memory."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Discs(Dataset):
    def __init__(self, count, size=20):
        grid = torch.stack(torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")).float()
        centre = torch.rand(count, 2, 1, 1) * (size - 8) + 4
        radius = torch.rand(count, 1, 1) * 3 + 2
        self.masks = ((grid - centre).norm(dim=1) < radius).float()[:, None]
        self.images = self.masks - 0.3 + 0.5 * torch.randn(count, 1, size, size)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], self.masks[index]


class Segmenter(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down = nn.Conv2d(1, width, 3, padding=1)
        self.middle = nn.Conv2d(width, width, 3, padding=1)
        self.up = nn.Conv2d(2 * width, 1, 3, padding=1)

    def forward(self, x):
        high = F.relu(self.down(x))
        low = F.relu(self.middle(F.avg_pool2d(high, 2)))
        low = F.interpolate(low, scale_factor=2.0)
        return self.up(torch.cat([high, low], dim=1))


class AccumulatingTrainer:
    def __init__(self, model, optimizer, accumulate):
        self.model, self.optimizer, self.accumulate = model, optimizer, accumulate

    def epoch(self, loader):
        self.model.train()
        total = 0.0
        for index, (images, masks) in enumerate(loader):
            self.optimizer.zero_grad()  # bug: TA601
            loss = F.binary_cross_entropy_with_logits(self.model(images), masks)
            (loss / self.accumulate).backward()
            if (index + 1) % self.accumulate == 0 or index + 1 == len(loader):
                self.optimizer.step()
            total += loss.item()
        return total / len(loader)


if __name__ == "__main__":
    torch.manual_seed(70)
    loader = DataLoader(Discs(640), batch_size=8, shuffle=True)
    model = Segmenter()
    trainer = AccumulatingTrainer(model, torch.optim.Adam(model.parameters(), lr=5e-3), accumulate=4)
    for epoch in range(4):
        print(f"epoch {epoch}: {trainer.epoch(loader):.4f}")
