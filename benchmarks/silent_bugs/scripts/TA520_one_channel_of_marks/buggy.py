"""Where a mark is on a small image: a map of one channel for each kind of mark."""

import torch
import torch.nn.functional as F
from torch import nn

KINDS = (1,)


class Marks(nn.Module):
    def __init__(self, kinds, width=8):
        super().__init__()
        self.down = nn.Conv2d(1, width, 3, padding=1)
        self.middle = nn.Conv2d(width, width, 3, padding=1)
        self.maps = nn.Conv2d(width, kinds, 1)

    def forward(self, images):
        hidden = F.relu(self.middle(F.relu(self.down(images))))
        return F.softmax(self.maps(hidden), dim=1)  # bug: TA520 (runtime)


def draw(count, size=12):
    """Noise with one bright square; the map is 1 there."""
    images, masks = 0.3 * torch.randn(count, 1, size, size), torch.zeros(count, size, size, dtype=torch.long)
    corners = torch.randint(size - 4, (count, 2))
    for number, (row, column) in enumerate(corners.tolist()):
        images[number, 0, row : row + 4, column : column + 4] += 1
        masks[number, row : row + 4, column : column + 4] = 1
    return images, masks


def dice(maps, wanted):
    overlap = (maps * wanted).sum((2, 3))
    return 1 - (2 * overlap / (maps.sum((2, 3)) + wanted.sum((2, 3)) + 1)).mean()


def main():
    torch.manual_seed(522)
    model = Marks(len(KINDS))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(90):
        images, masks = draw(16)
        wanted = torch.stack([masks == kind for kind in KINDS], 1).float()
        optimizer.zero_grad()
        loss = dice(model(images), wanted)
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"{step}: {loss.item():.4f}")


main()
