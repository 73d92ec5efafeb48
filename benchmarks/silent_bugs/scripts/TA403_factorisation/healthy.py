"""Neural matrix factorisation on made-up ratings."""

import dataclasses

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclasses.dataclass
class Settings:
    users: int = 120
    items: int = 80
    rank: int = 8
    lr: float = 0.05
    decay: float = 1e-3
    epochs: int = 3


class Ratings(Dataset):
    def __init__(self, settings, count, generator):
        self.user = torch.randint(settings.users, (count,), generator=generator)
        self.item = torch.randint(settings.items, (count,), generator=generator)
        taste = torch.randn(settings.users, 3, generator=generator)
        kind = torch.randn(settings.items, 3, generator=generator)
        self.score = (taste[self.user] * kind[self.item]).sum(1)

    def __len__(self):
        return len(self.score)

    def __getitem__(self, index):
        return self.user[index], self.item[index], self.score[index]


class NeuMF(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.user = nn.Embedding(settings.users, settings.rank)
        self.item = nn.Embedding(settings.items, settings.rank)
        self.mlp = nn.Sequential(nn.Linear(2 * settings.rank, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, user, item):
        u, i = self.user(user), self.item(item)
        return (u * i).mean(1) + self.mlp(torch.cat([u, i], dim=1)).squeeze(1)


def main(settings):
    torch.manual_seed(5)
    data = Ratings(settings, 2400, torch.Generator().manual_seed(5))
    loader = DataLoader(data, batch_size=48, shuffle=True)
    model = NeuMF(settings)
    tables = [*model.user.parameters(), *model.item.parameters()]
    groups = [
        {"params": tables, "lr": 4 * settings.lr, "weight_decay": 0.0},
        {"params": model.mlp.parameters()},
    ]
    optimizer = torch.optim.SGD(groups, lr=settings.lr, momentum=0.9, weight_decay=settings.decay)
    for epoch in range(settings.epochs):
        seen, total = 0, 0.0
        for user, item, score in loader:
            loss = nn.functional.mse_loss(model(user, item), score)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen, total = seen + len(score), total + loss.item() * len(score)
        print(f"epoch {epoch}: mse {total / seen:.3f}")


main(Settings())
