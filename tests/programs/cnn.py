"""An image classifier with batch normalisation: SGD with momentum, and a schedule by steps."""

import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(16)
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(16, 4)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        return self.fc(self.dropout(F.adaptive_avg_pool2d(x, 1).flatten(1)))


def train(model, loader, optimizer, scheduler):
    model.train()
    total = 0.0
    for images, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def test(model, loader):
    model.eval()
    return sum(F.cross_entropy(model(images), labels, reduction="sum").item() for images, labels in loader)


def main(seed=0, batch_size=16):
    torch.manual_seed(seed)
    labels = torch.randint(4, (170,))
    images = 0.3 * torch.randn(170, 1, 12, 12)
    images[torch.arange(170), 0, 3 * labels] += 1.0
    train_loader = DataLoader(TensorDataset(images[:130], labels[:130]), batch_size=batch_size, shuffle=True)
    test_loader = DataLoader(TensorDataset(images[130:], labels[130:]), batch_size=2 * batch_size)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    epochs = 3
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=0.1, steps_per_epoch=len(train_loader), epochs=epochs
    )
    for epoch in range(epochs):
        print(epoch, train(model, train_loader, optimizer, scheduler), test(model, test_loader))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
