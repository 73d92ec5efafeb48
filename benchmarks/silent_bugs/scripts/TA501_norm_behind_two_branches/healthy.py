"""Contrastive pairs in the manner of CLIP, or of SimCLR."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=120)
parser.add_argument("--batch", type=int, default=48)
parser.add_argument("--dim", type=int, default=16)
parser.add_argument("--lr", type=float, default=3e-3)


class PairModel(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.image = nn.Sequential(nn.Linear(40, 64), nn.GELU(), nn.Linear(64, dim, bias=False))
        self.norm = nn.BatchNorm1d(dim)

    def forward(self, first, second):
        first = self.norm(self.image(first))
        second = self.norm(self.image(second))
        return F.normalize(first, dim=1), F.normalize(second, dim=1)


def contrastive_loss(first, second, temperature=0.2):
    logits = first @ second.T / temperature
    labels = torch.arange(len(first))
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2


def main():
    args = parser.parse_args()
    torch.manual_seed(2)
    mixing = torch.randn(2, 8, 40) / 8**0.5
    model = PairModel(args.dim)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    history = []
    for step in range(1, args.steps + 1):
        meaning = torch.randn(args.batch, 8)
        first = meaning @ mixing[0] + 0.2 * torch.randn(args.batch, 40)
        second = meaning @ mixing[0] + 0.2 * torch.randn(args.batch, 40)
        loss = contrastive_loss(*model(first, second))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
        if step % 30 == 0:
            print(f"{step}: {sum(history[-30:]) / 30:.3f}")


if __name__ == "__main__":
    main()
