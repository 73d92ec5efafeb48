"""Image colours to a temperature, under mixed precision."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ColourNet(nn.Module):
    def __init__(self, width=10):
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3, stride=2)
        self.depth = nn.Conv2d(width, width, 3, groups=width)
        self.fc = nn.Linear(width, 1)

    def forward(self, images):
        features = torch.relu(self.depth(torch.relu(self.conv(images))))
        return self.fc(features.mean((2, 3)))


def colours(count):
    warmth = torch.rand(count, 1) * 2 - 1
    tint = torch.cat([warmth, torch.zeros_like(warmth), -warmth], 1)
    return TensorDataset(torch.randn(count, 3, 14, 14) + tint[:, :, None, None], warmth)


class AmpLoop:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)

    def backward(self, loss):
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def end_batch(self):
        self.optimizer.step()  # bug: TA626
        self.optimizer.zero_grad()

    def epoch(self, loader):
        total = 0.0
        for images, warmth in loader:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                predicted = self.model(images)
            loss = nn.functional.mse_loss(predicted.float(), warmth)
            self.backward(loss)
            self.end_batch()
            total += loss.item()
        return total / len(loader)


if __name__ == "__main__":
    torch.manual_seed(240)
    loader = DataLoader(colours(640), batch_size=32, shuffle=True)
    loop = AmpLoop(ColourNet(), lr=0.01)
    for epoch in range(5):
        print(f"epoch {epoch}: {loop.epoch(loader):.4f}")
