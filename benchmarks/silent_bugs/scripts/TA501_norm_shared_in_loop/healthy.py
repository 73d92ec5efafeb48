import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class TabularNet(nn.Module):
    def __init__(self, features, hidden=32, depth=4):
        super().__init__()
        sizes = [features] + [hidden] * depth
        self.layers = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in zip(sizes, sizes[1:]))
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden) for _ in range(depth))
        self.act = nn.ReLU()
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms):
            x = self.act(norm(layer(x)))
        return self.out(x)


def make_table(rows, features):
    x = torch.randn(rows, features)
    y = x[:, :1] * x[:, 1:2] + x[:, 2:3].sin() + 0.1 * torch.randn(rows, 1)
    return TensorDataset(x, y)


def fit(model, loader, optimizer, criterion):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def score(model, loader, criterion):
    model.eval()
    return sum(criterion(model(x), y).item() for x, y in loader) / len(loader)


def main():
    torch.manual_seed(5)
    train_set, valid_set = random_split(make_table(1280, 6), [1024, 256])
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    valid_loader = DataLoader(valid_set, batch_size=64)
    model = TabularNet(6)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.MSELoss()
    for epoch in range(8):
        train_loss = fit(model, train_loader, optimizer, criterion)
        print(f"{epoch:2d}  train {train_loss:.4f}  valid {score(model, valid_loader, criterion):.4f}")


main()
