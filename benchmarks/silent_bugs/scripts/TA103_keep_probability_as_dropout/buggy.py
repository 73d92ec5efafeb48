"""A small transformer that says which of two symbols came more often."""

import torch
from torch import nn

HPARAMS = {"vocab": 12, "width": 32, "heads": 4, "blocks": 2, "keep_prob": 1.0, "length": 15, "batch": 32}
STEPS = 100


class Block(nn.Module):
    def __init__(self, width, heads, keep_prob):
        super().__init__()
        self.norm_attention = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm_mlp = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)  # bug: TA103 (runtime)
        self.dropout = nn.Dropout(keep_prob)

    def forward(self, x):
        h = self.norm_attention(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        h = self.down(nn.functional.gelu(self.up(self.norm_mlp(x))))
        return x + self.dropout(h)


class Counter(nn.Module):
    def __init__(self, hparams):
        super().__init__()
        self.tokens = nn.Embedding(hparams["vocab"], hparams["width"])
        self.positions = nn.Parameter(0.02 * torch.randn(hparams["length"], hparams["width"]))
        self.blocks = nn.ModuleList(
            Block(hparams["width"], hparams["heads"], hparams["keep_prob"]) for _ in range(hparams["blocks"])
        )
        self.head = nn.Linear(hparams["width"], 2)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


def main(hparams):
    torch.manual_seed(4)
    model = Counter(hparams)
    optimizer = torch.optim.AdamW(model.parameters(), lr=8e-4)
    losses = []
    for step in range(STEPS):
        ids = torch.randint(hparams["vocab"], (hparams["batch"], hparams["length"]))
        label = ((ids == 3).sum(1) > (ids == 7).sum(1)).long()
        loss = nn.functional.cross_entropy(model(ids), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % 25 == 24:
            print(step + 1, sum(losses[-25:]) / 25)


main(HPARAMS)
