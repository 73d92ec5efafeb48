"""Masks of discs in noise; the loss is dice plus binary cross entropy."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def discs(count, size=16):
    grid = torch.arange(size).float()
    centre = 4 + (size - 8) * torch.rand(count, 2, 1, 1)
    radius = 2 + 2 * torch.rand(count, 1, 1)
    distance = (grid.view(1, -1, 1) - centre[:, 0]) ** 2 + (grid.view(1, 1, -1) - centre[:, 1]) ** 2
    masks = (distance < radius**2).float().unsqueeze(1)
    return masks - 0.2 + 0.6 * torch.randn_like(masks), masks


class MaskHead(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 5, padding=2),
            nn.ReLU(),
        )
        self.score = nn.Conv2d(width, 1, 1)

    def forward(self, images):
        scores = self.score(self.features(images))
        return {"score": scores, "mask": torch.sigmoid(scores)}


class SegmentationLoss(nn.Module):
    def __init__(self, smooth=1.0):
        super().__init__()
        self.smooth = smooth
        self.bce = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([2.0]))

    def forward(self, output, target):
        mask = output["mask"]
        overlap = (mask * target).sum(dim=(1, 2, 3))
        size = mask.sum(dim=(1, 2, 3)) + target.sum(dim=(1, 2, 3))
        dice = 1 - ((2 * overlap + self.smooth) / (size + self.smooth)).mean()
        return dice + self.bce(mask, target)  # bug: TA408


def main():
    torch.manual_seed(14)
    loader = DataLoader(TensorDataset(*discs(768)), batch_size=24, shuffle=True, drop_last=True)
    model, criterion = MaskHead(), SegmentationLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(3):
        total = 0.0
        for images, masks in loader:
            loss = criterion(model(images), masks)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch}: {(total / len(loader)).item():.4f}")


if __name__ == "__main__":
    main()
