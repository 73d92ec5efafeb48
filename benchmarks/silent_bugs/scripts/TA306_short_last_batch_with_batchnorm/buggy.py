"""A CNN with batch normalisation."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_net():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * 4 * 4, 3),
    )


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(129, 1, 8, 8), torch.randint(3, (129,)))
    loader = DataLoader(data, batch_size=32, shuffle=True)  # bug: TA306
    net = make_net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for epoch in range(6):
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(images), labels)
            loss.backward()
            optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
