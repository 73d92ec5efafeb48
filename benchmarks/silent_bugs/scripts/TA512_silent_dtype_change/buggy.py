"""Mixed precision, with a helper that wraps a block."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 4 * width)  # bug: TA512 (runtime)
        self.down = nn.Linear(4 * width, width)

    def expand(self, x):
        with torch.autocast("cpu", enabled=False):
            return torch.relu(self.up(x))

    def forward(self, x):
        return x + self.down(self.expand(x))


def main():
    torch.manual_seed(0)
    model = nn.Sequential(Block(16), nn.Linear(16, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(20):
        x = torch.randn(32, 16)
        y = x[:, :3].argmax(dim=1)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            scores = model(x)
        loss = nn.functional.cross_entropy(scores.float(), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
