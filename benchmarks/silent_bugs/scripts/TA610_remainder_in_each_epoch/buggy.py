"""Metric learning with triplets, gradients accumulated over batches."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Triplets(Dataset):
    def __init__(self, count, dim=10, classes=6):
        centres = torch.randn(classes, dim)
        kind = torch.randint(classes, (count,))
        other = (kind + torch.randint(1, classes, (count,))) % classes
        draw = lambda which: centres[which] + 0.5 * torch.randn(count, dim)
        self.items = torch.stack([draw(kind), draw(kind), draw(other)], 1)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return tuple(self.items[index])


def embedder(dim=10, out=6):
    return nn.Sequential(nn.Linear(dim, 32), nn.PReLU(), nn.Linear(32, out))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accumulation", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--margin", type=float, default=1.0)
    args = parser.parse_args()

    torch.manual_seed(133)
    loader = DataLoader(Triplets(416), batch_size=32, shuffle=True)
    model = embedder()
    criterion = nn.TripletMarginLoss(margin=args.margin)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        total = 0.0
        for step, (anchor, positive, negative) in enumerate(loader):
            loss = criterion(model(anchor), model(positive), model(negative))
            loss.div(args.accumulation).backward()
            total += loss.item()
            if step % args.accumulation == args.accumulation - 1:  # bug: TA610 (static)
                optimizer.step()  # bug: TA610 (runtime)
                optimizer.zero_grad()
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1}: {total / len(loader):.4f}")


main()
