"""Trains on a table of measurements."""

import csv
import random
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Measurements(Dataset):
    def __init__(self, path):
        with open(path, newline="") as file:
            self.rows = [[float(cell) for cell in row] for row in csv.reader(file)]
        if any(row[-1] not in (0.0, 1.0) for row in self.rows):
            raise ValueError("a label is neither 0 nor 1")

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        *values, label = self.rows[index]
        return torch.tensor(values), torch.tensor([label])


def write_table(path):
    rows = [[random.gauss(0, 1) for _ in range(5)] for _ in range(160)]
    rows = [[*row, float(row[0] > 0)] for row in rows]
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(rows)


def main(path):
    random.seed(0)
    torch.manual_seed(0)
    write_table(path)
    model = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.BCEWithLogitsLoss()
    for values, labels in DataLoader(Measurements(path), batch_size=16, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(model(values), labels)
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder) / "table.csv")
