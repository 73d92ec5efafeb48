"""Click prediction with hashed categories."""

import zlib

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BUCKETS = 300


def bucket(name):
    return zlib.crc32(name.encode()) % BUCKETS + 1  # 0 stands for an unknown one


class Clicks(Dataset):
    def __init__(self, rows, seed):
        generator = torch.Generator().manual_seed(seed)
        self.site = torch.randint(250, (rows,), generator=generator).tolist()
        self.advert = torch.randint(250, (rows,), generator=generator).tolist()
        self.hour = torch.rand(rows, 1, generator=generator)

    def __len__(self):
        return len(self.site)

    def __getitem__(self, index):
        site, advert = self.site[index], self.advert[index]
        ids = torch.tensor([bucket(f"site-{site}"), bucket(f"advert-{advert}")])
        click = float(site % 3 == 0 or advert % 4 == 0)
        return ids, self.hour[index], click


class ClickModel(nn.Module):
    def __init__(self, rows, width=12):
        super().__init__()
        self.table = nn.Embedding(rows, width)
        self.deep = nn.Sequential(nn.Linear(2 * width + 1, 32), nn.ReLU6(), nn.Linear(32, 1))

    def forward(self, ids, hour):
        features = torch.cat([self.table(ids).flatten(1), hour], dim=1)
        return self.deep(features).squeeze(1)


def main():
    torch.manual_seed(41)
    loader = DataLoader(Clicks(3200, seed=41), batch_size=32, shuffle=True)
    model = ClickModel(BUCKETS + 1)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(2):
        total = 0.0
        for ids, hour, click in loader:
            logit = model(ids, hour)
            loss = criterion(logit, click.float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total / len(loader))


if __name__ == "__main__":
    main()
