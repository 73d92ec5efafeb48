"""Image regression: the angle of a line."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Lines(Dataset):
    def __init__(self, count, size=14):
        axis = torch.linspace(-1, 1, size)
        angle = torch.rand(count) * 3.1416
        distance = (
            axis[None, :, None] * angle.cos()[:, None, None]
            - axis[None, None, :] * angle.sin()[:, None, None]
        )
        self.images = (
            torch.exp(-8 * distance.square())[:, None] * 2 - 1 + 0.2 * torch.randn(count, 1, size, size)
        )
        self.targets = torch.stack([(2 * angle).cos(), (2 * angle).sin()], 1)

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, index):
        return self.images[index], self.targets[index]


class AngleNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 5, stride=2),
            nn.LeakyReLU(0.1),
            nn.Conv2d(width, 2 * width, 3),
            nn.LeakyReLU(0.1),
            nn.Flatten(),
        )
        self.regress = nn.Linear(2 * width * 9, 2)

    def forward(self, image):
        return self.regress(self.features(image))


class Fit:
    def __init__(self, model, loader, epochs, max_lr):
        self.model, self.loader, self.epochs = model, loader, epochs
        self.optimizer = torch.optim.SGD(model.parameters(), lr=max_lr / 25, momentum=0.9)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr, total_steps=epochs * len(loader)
        )

    def epoch(self):
        total = 0.0
        for image, target in self.loader:
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(image), target)
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            total += loss.item()
        return total / len(self.loader)

    def run(self):
        for number in range(self.epochs):
            loss = self.epoch()
            print(f"epoch {number}: {loss:.4f} at {self.schedule.get_last_lr()[0]:.4f}")


if __name__ == "__main__":
    torch.manual_seed(112)
    Fit(AngleNet(), DataLoader(Lines(640), batch_size=32, shuffle=True), epochs=8, max_lr=0.1).run()
