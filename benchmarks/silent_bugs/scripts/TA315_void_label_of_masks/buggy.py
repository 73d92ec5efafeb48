"""Semantic segmentation with a void border around each object."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

VOID, KINDS = 255, 4


class Shapes(Dataset):
    def __init__(self, n, size=20):
        generator = torch.Generator().manual_seed(53)
        self.kind = torch.randint(1, KINDS, (n,), generator=generator)
        self.corner = torch.randint(2, size - 8, (n, 2), generator=generator)
        self.noise = 0.3 * torch.randn(n, 3, size, size, generator=generator)

    def __len__(self):
        return len(self.kind)

    def __getitem__(self, index):
        image = self.noise[index].clone()
        mask = torch.zeros(image.shape[1:], dtype=torch.long)
        (row, column), kind = self.corner[index].tolist(), int(self.kind[index])
        mask[row - 1 : row + 7, column - 1 : column + 7] = VOID
        mask[row : row + 6, column : column + 6] = kind
        image[kind - 1, row : row + 6, column : column + 6] += 1
        return image, mask


class UNetish(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.down = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.middle = nn.Conv2d(width, width, 3, padding=1)
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.out = nn.Conv2d(width + 3, KINDS, 3, padding=1)

    def forward(self, image):
        x = nn.functional.relu(self.down(image))
        x = nn.functional.relu(self.middle(x))
        return self.out(torch.cat([self.up(x), image], dim=1))


def main():
    torch.manual_seed(53)
    loader = DataLoader(Shapes(640), batch_size=16, shuffle=True)
    model = UNetish()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(2):
        total = 0.0
        for image, mask in loader:
            optimizer.zero_grad()
            loss = criterion(model(image), mask)  # bug: TA315 (runtime)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total / len(loader))


if __name__ == "__main__":
    main()
