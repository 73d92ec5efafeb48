"""Trains with dropout and then evaluates."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(10, 64)
        self.fc2 = nn.Linear(64, 3)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.dropout(x, p=0.5)  # bug: TA416
        return self.fc2(x)


@torch.no_grad()
def accuracy(net, x, y):
    net.eval()
    right = (net(x).argmax(dim=1) == y).float().mean().item()
    net.train()
    return right


def main():
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    x = torch.randn(256, 10)
    y = x[:, :3].argmax(dim=1)
    for epoch in range(3):
        for start in range(0, 256, 32):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x[start : start + 32]), y[start : start + 32])
            loss.backward()
            optimizer.step()
        print(epoch, accuracy(net, x, y))


if __name__ == "__main__":
    main()
