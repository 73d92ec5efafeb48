"""Channel attention in a small CNN; the class is the colour of the larger half."""

import torch
from torch import nn


class SqueezeExcite(nn.Module):
    def __init__(self, channels, reduced):
        super().__init__()
        self.reduce = nn.Linear(channels, reduced)
        self.expand = nn.Linear(reduced, channels)
        self.gate = nn.Sigmoid()  # bug: TA109 (runtime)

    def forward(self, x):
        squeezed = x.sum(dim=(2, 3))
        scale = self.gate(self.expand(nn.functional.silu(self.reduce(squeezed))))
        return x * scale[:, :, None, None]


class ColourNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, padding=1)
        self.attend = SqueezeExcite(width, 8)
        self.conv2 = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.fc = nn.Linear(width, 3)

    def forward(self, x):
        x = self.attend(nn.functional.softplus(self.conv1(x)))
        x = nn.functional.softplus(self.conv2(x))
        return self.fc(x.mean((2, 3)))


def halves(n, size=32):
    label = torch.randint(3, (n,))
    other = (label + torch.randint(1, 3, (n,))) % 3
    image = 0.3 * torch.randn(n, 3, size, size)
    for i in range(n):
        cut = int(torch.randint(size // 2 + 2, size - 4, ()))
        image[i, label[i], :, :cut] += 1
        image[i, other[i], :, cut:] += 1
    return image, label


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)

    def fit(self, steps, batch):
        for step in range(steps):
            image, label = halves(batch)
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(image), label)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
            self.optimizer.step()
            if step % 10 == 0:
                print(step, round(loss.item(), 4))


if __name__ == "__main__":
    torch.manual_seed(22)
    Trainer(ColourNet(), lr=0.05).fit(steps=60, batch=16)
