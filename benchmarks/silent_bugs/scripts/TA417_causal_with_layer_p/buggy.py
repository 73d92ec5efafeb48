"""A causal transformer block that copies what it saw some steps ago."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Config:
    vocabulary: int = 12
    width: int = 32
    heads: int = 4
    context: int = 16
    dropout: float = 0.15
    steps: int = 160


class CausalAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)
        self.residual_drop = nn.Dropout(config.dropout)

    def forward(self, x):
        batch, steps, width = x.shape
        q, k, v = (
            part.view(batch, steps, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        y = F.scaled_dot_product_attention(  # bug: TA417
            q, k, v, dropout_p=self.residual_drop.p, is_causal=True
        )
        return self.residual_drop(self.out(y.transpose(1, 2).reshape(batch, steps, width)))


class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.places = nn.Embedding(config.context, config.width)
        self.norm1, self.norm2 = nn.LayerNorm(config.width), nn.LayerNorm(config.width)
        self.attention = CausalAttention(config)
        self.mlp = nn.Sequential(nn.Linear(config.width, 64), nn.GELU(), nn.Linear(64, config.width))
        self.head = nn.Linear(config.width, config.vocabulary)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        x = x + self.attention(self.norm1(x))
        return self.head(self.norm2(x + self.mlp(x)))


def batch(config, size=32, delay=2):
    tokens = torch.randint(config.vocabulary, (size, config.context))
    return tokens, torch.roll(tokens, delay, dims=1), delay


def loss_on(model, tokens, target, delay):
    logits = model(tokens)[:, delay:]
    return F.cross_entropy(logits.flatten(0, 1), target[:, delay:].flatten())


def main():
    config = Config()
    torch.manual_seed(48)
    model = Model(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    held_out = batch(config, size=64)
    for step in range(config.steps):
        model.train()
        loss = loss_on(model, *batch(config))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if (step + 1) % 40 == 0:
            model.eval()
            with torch.no_grad():
                print(f"step {step + 1}: {loss.item():.3f} held out {loss_on(model, *held_out).item():.3f}")


main()
