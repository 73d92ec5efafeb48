"""A small residual network over synthetic textures."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.inner = nn.ReLU()  # bug: TA105 (runtime)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.outer = nn.ReLU()

    def forward(self, x):
        branch = self.norm2(self.conv2(self.inner(self.norm1(self.conv1(x)))))
        return self.outer(x + branch)


class Net(nn.Module):
    def __init__(self, channels=12, classes=4):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(Residual(channels), Residual(channels))
        self.classify = nn.Linear(channels, classes)
        self.reset()

    def reset(self):
        for module in self.blocks:
            for part in module.modules():
                if isinstance(part, nn.BatchNorm2d):
                    nn.init.zeros_(part.weight)

    def forward(self, x):
        return self.classify(self.blocks(self.stem(x)).mean((2, 3)))


def textures(n):
    label = torch.randint(4, (n,))
    ramp = torch.arange(16.0)
    waves = torch.sin(ramp * (0.5 + 0.5 * label[:, None])).view(n, 1, 1, 16)
    return TensorDataset(waves + 0.4 * torch.randn(n, 3, 16, 16), label)


def evaluate(net, loader):
    net.eval()
    with torch.no_grad():
        hits = sum((net(x).argmax(1) == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


torch.manual_seed(6)
train_loader = DataLoader(textures(640), batch_size=32, shuffle=True)
test_loader = DataLoader(textures(160), batch_size=80)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for epoch in range(4):
    net.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, evaluate(net, test_loader))
