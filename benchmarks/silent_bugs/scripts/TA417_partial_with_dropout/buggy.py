"""Set regression: a learned query attends to the elements of a set."""

import functools

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

ATTEND = functools.partial(F.scaled_dot_product_attention, dropout_p=0.2)  # bug: TA417 (static)


class Pool(nn.Module):
    def __init__(self, width, queries):
        super().__init__()
        self.queries = nn.Parameter(0.3 * torch.randn(queries, width))
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, elements):
        queries = self.queries.expand(len(elements), -1, -1)
        return ATTEND(queries, self.key(elements), self.value(elements)).flatten(1)  # bug: TA417 (runtime)


class SetNet(nn.Module):
    def __init__(self, features=3, width=16, queries=2):
        super().__init__()
        self.lift = nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.Linear(width, width))
        self.pool = Pool(width, queries)
        self.out = nn.Linear(width * queries, 1)

    def forward(self, elements):
        return self.out(self.pool(self.lift(elements))).squeeze(-1)


class Sets(Dataset):
    def __init__(self, count, elements=9):
        self.x = torch.randn(count, elements, 3)
        self.y = self.x[..., 0].amax(dim=1) - self.x[..., 1].mean(dim=1)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


def epoch_of(model, loader, optimizer=None):
    model.train(optimizer is not None)
    total = 0.0
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            loss = F.mse_loss(model(x), y)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item()
    return total / len(loader)


def main():
    torch.manual_seed(50)
    training = DataLoader(Sets(1600), batch_size=40, shuffle=True)
    validation = DataLoader(Sets(400), batch_size=100)
    model = SetNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(3):
        learnt = epoch_of(model, training, optimizer)
        print(f"epoch {epoch}: training {learnt:.3f} validation {epoch_of(model, validation):.3f}")


main()
