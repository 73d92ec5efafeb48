import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class DropoutMLP(nn.Module):
    def __init__(self, features=10, width=48, classes=4):
        super().__init__()
        self.first = nn.Linear(features, width)
        self.second = nn.Linear(width, width)
        self.out = nn.Linear(width, classes)
        self.drop = nn.Dropout(0.3)

    def forward(self, x):
        x = self.drop(torch.relu(self.first(x)))
        x = self.drop(torch.relu(self.second(x)))
        return self.out(x)


@torch.no_grad()
def move_average(average, model, decay=0.95):
    for slow, fast in zip(average.parameters(), model.parameters()):
        slow.lerp_(fast, 1 - decay)


def quadrants(count):
    x = torch.randn(count, 10)
    return TensorDataset(x, 2 * (x[:, 0] > 0).long() + (x[:, 1] + x[:, 2] > 0).long())


def accuracy(model, average, loader):
    model.eval()
    hits = 0
    with torch.no_grad():
        for x, y in loader:
            hits += (average(x).argmax(1) == y).sum().item()  # bug: TA612
    return hits / len(loader.dataset)


def main(epochs=8):
    torch.manual_seed(158)
    train_set, test_set = random_split(quadrants(1200), [960, 240])
    train_loader = DataLoader(train_set, batch_size=48, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=48)
    model = DropoutMLP()
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            move_average(average, model)
            total += loss.item()
        print(
            f"epoch {epoch}: {total / len(train_loader):.4f}, average {accuracy(model, average, test_loader):.3f}"
        )


if __name__ == "__main__":
    main()
