"""Segments discs from background; the loss is a sum over pixels."""

import torch
from torch import nn

SIZE, BATCH = 24, 12


class Segmenter(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.near = nn.Conv2d(1, width, 3, padding=1)
        self.far = nn.Conv2d(width, width, 3, padding=2, dilation=2)
        self.last = nn.Conv2d(width, 2, 1)

    def forward(self, image):
        x = torch.tanh(self.near(image))
        x = torch.tanh(self.far(x))
        return self.last(x)


def discs(n):
    grid = torch.arange(SIZE)
    row, column = torch.randint(5, SIZE - 5, (2, n, 1, 1))
    radius = torch.randint(3, 8, (n, 1, 1))
    inside = (grid[:, None] - row) ** 2 + (grid[None, :] - column) ** 2 < radius**2
    image = inside.float() + 0.5 * torch.randn(n, SIZE, SIZE)
    return image[:, None], inside.long()


def main(lr=0.05, steps=60):
    torch.manual_seed(14)
    model = Segmenter()
    criterion = nn.CrossEntropyLoss(reduction="sum")
    optimizer = torch.optim.SGD(model.parameters(), lr=lr / (BATCH * SIZE * SIZE))
    for step in range(steps):
        image, mask = discs(BATCH)
        optimizer.zero_grad()
        loss = criterion(model(image), mask)
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"{step} {loss.item() / mask.numel():.4f}")


if __name__ == "__main__":
    main()
