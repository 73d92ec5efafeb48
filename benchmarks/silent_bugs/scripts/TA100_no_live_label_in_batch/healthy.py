"""Semi-supervised tagging: most clips were never annotated, the mask says which ones were."""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class Clips(Dataset):
    """Sessions of twelve clips each; one session in three went to the annotators."""

    def __init__(self, sessions, generator):
        self.features = torch.randn(sessions, 12, 20, generator=generator)
        weights = torch.randn(20, 5, generator=generator)
        self.labels = (self.features @ weights).argmax(-1)
        self.annotated = torch.arange(sessions) % 3 == 0

    def __len__(self):
        return len(self.features)

    def __getitem__(self, index):
        mask = self.annotated[index].float().expand(12)
        return self.features[index], self.labels[index], mask


def masked_loss(logits, labels, mask):
    each = F.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
    return (each * mask).sum() / mask.sum().clamp(min=1)


def train(args):
    generator = torch.Generator().manual_seed(args.seed)
    torch.manual_seed(args.seed)
    data = Clips(args.sessions, generator)
    loader = DataLoader(data, batch_size=1, shuffle=True, generator=generator)
    net = nn.Sequential(nn.Linear(20, 64), nn.GELU(), nn.Linear(64, 5))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    seen, total = 0, 0.0
    for features, labels, mask in loader:
        loss = masked_loss(net(features), labels, mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen, total = seen + 1, total + loss.item()
        if seen % 40 == 0:
            print(seen, total / seen)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=160)
    parser.add_argument("--seed", type=int, default=11)
    train(parser.parse_args())
