"""Small CNN; after the warm-up a third of the filters of the second layer is pruned, then it is tuned."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 6, 3, padding=1)
        self.second = nn.Conv2d(6, 12, 3, padding=1)  # bug: TA405 (runtime)
        self.pool = nn.MaxPool2d(2)
        self.classify = nn.Linear(12 * 4, 4)

    def forward(self, x):
        x = self.pool(torch.relu(self.first(x)))
        x = self.pool(torch.relu(self.second(x)))
        return self.classify(x.flatten(1))


def quadrants(count):
    labels = torch.randint(4, (count,))
    images = 0.6 * torch.randn(count, 1, 8, 8)
    for image, label in zip(images, labels.tolist()):
        top, left = 4 * (label // 2), 4 * (label % 2)
        image[0, top : top + 4, left : left + 4] += 1.5
    return images, labels


def shrink(conv, share):
    count = int(share * conv.out_channels)
    with torch.no_grad():
        weakest = conv.weight.flatten(1).norm(dim=1).argsort()[:count]
        conv.weight[weakest] = 0.0
        conv.bias[weakest] = 0.0


def fit(model, steps, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for step in range(steps):
        images, labels = quadrants(32)
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


torch.manual_seed(0)
net = Net()
print("warm-up", fit(net, 40, 0.1))
shrink(net.second, 1 / 3)
print("tuned", fit(net, 40, 0.05))
