"""Contrastive pre-training of a two-view encoder (InfoNCE)."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

OPTIONS = {"temperature": 0.01, "batch_size": 32, "lr": 1e-3, "epochs": 2, "pairs": 1600}


def info_nce(a, b, temperature):
    a, b = nn.functional.normalize(a, dim=1), nn.functional.normalize(b, dim=1)
    similarity = a @ b.t() / temperature
    partition = similarity.exp().sum(dim=1).log()  # bug: TA110
    return (partition - similarity.diagonal()).mean()


def make_views(n):
    scene = torch.randn(n, 18)
    return TensorDataset(scene + 0.1 * torch.randn(n, 18), scene + 0.1 * torch.randn(n, 18))


def make_encoder():
    return nn.Sequential(
        nn.Linear(18, 64),
        nn.LayerNorm(64),
        nn.GELU(),
        nn.Linear(64, 16),
    )


def pretrain(options):
    torch.manual_seed(25)
    loader = DataLoader(make_views(options["pairs"]), options["batch_size"], shuffle=True, drop_last=True)
    encoder = make_encoder()
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=options["lr"])
    for epoch in range(options["epochs"]):
        losses = []
        for first, second in loader:
            loss = info_nce(encoder(first), encoder(second), options["temperature"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print("epoch", epoch, "loss", sum(losses) / len(losses))
    return encoder


if __name__ == "__main__":
    pretrain(OPTIONS)
