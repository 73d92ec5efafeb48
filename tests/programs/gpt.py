"""A small GPT with tied embeddings: batches cut at random, clipping, warm-up, and evaluation every few iterations."""

import math
import sys

import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY, CONTEXT, WIDTH, HEADS = 24, 12, 16, 2


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.dropout = 0.1

    def forward(self, x):
        batch, time, _ = x.shape
        split = self.qkv(x).view(batch, time, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        rate = self.dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(split[0], split[1], split[2], is_causal=True, dropout_p=rate)
        return self.proj(mixed.transpose(1, 2).reshape(batch, time, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.1)
        )

    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, ids, targets=None):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        scores = self.head(self.norm(x))
        loss = None if targets is None else F.cross_entropy(scores.flatten(0, 1), targets.flatten())
        return scores, loss

    @torch.no_grad()
    def generate(self, ids, new):
        for _ in range(new):
            scores, _ = self(ids[:, -CONTEXT:])
            ids = torch.cat([ids, torch.multinomial(scores[:, -1].softmax(dim=1), 1)], dim=1)
        return ids


def cut(text, batch_size):
    starts = torch.randint(len(text) - CONTEXT - 1, (batch_size,))
    rows = torch.stack([text[start : start + CONTEXT + 1] for start in starts])
    return rows[:, :-1], rows[:, 1:]


@torch.no_grad()
def estimate(model, text, batch_size):
    model.eval()
    losses = [model(*cut(text, batch_size))[1].item() for _ in range(3)]
    model.train()
    return sum(losses) / len(losses)


def main(seed=0, batch_size=8):
    torch.manual_seed(seed)
    text = torch.arange(2000) * torch.randint(1, 4, (2000,)) % VOCABULARY
    model = GPT()
    decay = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=3e-3
    )
    iterations = 480 // batch_size
    for iteration in range(iterations):
        rate = (
            3e-3 * min(1.0, (iteration + 1) / 5) * (0.55 + 0.45 * math.cos(math.pi * iteration / iterations))
        )
        for group in optimizer.param_groups:
            group["lr"] = rate
        if iteration % 8 == 0:
            print(iteration, estimate(model, text, batch_size))
        _, loss = model(*cut(text, batch_size))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    print(model.generate(torch.zeros(1, 1, dtype=torch.long), 16).tolist())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
