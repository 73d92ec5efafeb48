"""A dataset that reads records one after the other."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Records(Dataset):
    def __init__(self, count=240):
        generator = torch.Generator().manual_seed(5)
        self.rows = torch.randn(count, 9, generator=generator)
        self.position = -1

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        self.position += 1
        row = self.rows[self.position]
        return row[:8], row[8:]


class Trainer:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def fit(self):
        for x, y in self.loader:
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(x), y)
            loss.backward()
            self.optimizer.step()
        print(loss.item())


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    loader = DataLoader(Records(), batch_size=8, shuffle=True, num_workers=2)  # bug: TA313 (runtime)
    Trainer(model, loader).fit()


if __name__ == "__main__":
    main()
