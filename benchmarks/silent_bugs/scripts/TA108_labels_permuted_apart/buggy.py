"""Classifies gait from summary features, in one pass over a large table."""

import argparse

import torch
from torch import nn


def load_table(rows, classes, generator):
    centres = 1.5 * torch.randn(classes, 14, generator=generator)
    labels = torch.arange(rows) * classes // rows
    return centres[labels] + torch.randn(rows, 14, generator=generator), labels


def shuffled(*columns, generator):
    return [column[torch.randperm(len(column), generator=generator)] for column in columns]


def batches(features, labels, size):
    for start in range(0, len(features), size):
        yield features[start : start + size], labels[start : start + size]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=40960)
    parser.add_argument("--classes", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-3)
    options = parser.parse_args()

    torch.manual_seed(23)
    generator = torch.Generator().manual_seed(23)
    features, labels = load_table(options.rows, options.classes, generator)
    features, labels = shuffled(features, labels, generator=generator)
    model = nn.Sequential(nn.LayerNorm(14), nn.Linear(14, 24), nn.Tanh(), nn.Linear(24, options.classes))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    total = 0.0
    for step, (x, y) in enumerate(batches(features, labels, options.batch_size), 1):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()  # bug: TA108 (runtime)
        optimizer.step()
        total += loss.item()
        if step % 160 == 0:
            print(f"{step:5d} {total / 160:.4f}")
            total = 0.0


if __name__ == "__main__":
    main()
