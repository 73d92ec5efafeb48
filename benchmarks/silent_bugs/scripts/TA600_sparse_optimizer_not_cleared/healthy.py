"""Ratings from factors of users and items."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class Recommender(nn.Module):
    def __init__(self, users, items, dim=8):
        super().__init__()
        self.user = nn.Embedding(users, dim, sparse=True)
        self.item = nn.Embedding(items, dim, sparse=True)
        self.mlp = nn.Sequential(nn.Linear(2 * dim, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, user, item):
        joined = torch.cat([self.user(user), self.item(item)], dim=-1)
        return self.mlp(joined)[:, 0]


def ratings(count, users=50, items=40):
    taste, kind = torch.randn(users, 3), torch.randn(items, 3)
    user, item = torch.randint(users, (count,)), torch.randint(items, (count,))
    return TensorDataset(user, item, torch.tanh((taste[user] * kind[item]).sum(1)))


def make_optimizers(model, lr):
    embeddings = [*model.user.parameters(), *model.item.parameters()]
    return torch.optim.SparseAdam(embeddings, lr=lr), torch.optim.Adam(model.mlp.parameters(), lr=lr)


def train(model, loader, sparse, dense, criterion):
    model.train()
    total = 0.0
    for user, item, rating in loader:
        sparse.zero_grad()
        dense.zero_grad()
        loss = criterion(model(user, item), rating)
        loss.backward()
        dense.step()
        sparse.step()
        total += loss.item()
    return total / len(loader)


def validate(model, loader, criterion):
    model.eval()
    with torch.no_grad():
        losses = [criterion(model(user, item), rating).item() for user, item, rating in loader]
    return sum(losses) / len(losses)


def main(epochs=6, lr=5e-3):
    torch.manual_seed(44)
    train_set, valid_set = random_split(ratings(1600), [1280, 320])
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    valid_loader = DataLoader(valid_set, batch_size=64)
    model = Recommender(50, 40)
    sparse, dense = make_optimizers(model, lr)
    criterion = nn.MSELoss()
    for epoch in range(epochs):
        loss = train(model, train_loader, sparse, dense, criterion)
        print(f"epoch {epoch}: {loss:.4f}, validation {validate(model, valid_loader, criterion):.4f}")


if __name__ == "__main__":
    main()
