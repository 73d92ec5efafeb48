"""A classifier of texts."""

import torch
from torch import nn


class TextModel(nn.Module):
    def __init__(self, vocabulary=200, width=24):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.out = nn.Linear(width, 2)

    def forward(self, ids):
        return self.out(self.words(ids).mean(dim=1))


def main():
    torch.manual_seed(0)
    model = TextModel()
    groups = [
        {"params": model.out.parameters(), "weight_decay": 0.01},
        {"params": model.words.parameters(), "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=1e-3)
    for _ in range(20):
        ids = torch.randint(200, (32, 10))
        labels = (ids[:, 0] % 2).long()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(ids), labels)
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
