"""Super-resolution of small images, in parts that fit into memory."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Upscaler(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.enter = nn.Conv2d(1, width, 3, padding=1)
        self.middle = nn.Conv2d(width, width, 3, padding=1)
        self.leave = nn.Conv2d(width, 4, 3, padding=1)

    def forward(self, small):
        hidden = F.relu(self.enter(small))
        hidden = hidden + F.relu(self.middle(hidden))
        return F.pixel_shuffle(self.leave(hidden), 2)


def pictures(count, size=16):
    axis = torch.linspace(0, 3, size)
    phase = 6.28 * torch.rand(count, 2, 1)
    speed = 1 + 2 * torch.rand(count, 2, 1)
    waves = torch.sin(speed * axis + phase)
    large = (waves[:, 0, :, None] * waves[:, 1, None, :])[:, None]
    return TensorDataset(F.avg_pool2d(large, 2) + 0.02 * torch.randn(count, 1, size // 2, size // 2), large)


class SplitStep:
    def __init__(self, model, parts, limit):
        self.model, self.parts, self.limit = model, parts, limit
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.2)

    def __call__(self, small, large):
        self.optimizer.zero_grad()
        value = 0.0
        for small_part, large_part in zip(small.chunk(self.parts), large.chunk(self.parts)):
            loss = F.l1_loss(self.model(small_part), large_part) / self.parts
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), self.limit)  # bug: TA622
            value += loss.item()
        self.optimizer.step()
        return value


def main(epochs=5):
    torch.manual_seed(220)
    loader = DataLoader(pictures(640), batch_size=32, shuffle=True)
    step = SplitStep(Upscaler(), parts=4, limit=0.25)
    for epoch in range(epochs):
        losses = [step(small, large) for small, large in loader]
        print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}")


main()
