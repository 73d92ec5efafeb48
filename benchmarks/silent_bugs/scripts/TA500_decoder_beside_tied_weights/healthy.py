"""A next-token model of a small grammar."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    vocabulary: int = 24
    width: int = 32
    context: int = 12
    batch: int = 32
    steps: int = 160
    lr: float = 3e-3


class LanguageModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed = nn.Embedding(config.vocabulary, config.width)
        self.rnn = nn.GRU(config.width, config.width, batch_first=True)
        self.norm = nn.LayerNorm(config.width)
        self.decoder = nn.Linear(config.width, config.vocabulary, bias=False)

    def forward(self, tokens):
        hidden, _ = self.rnn(self.embed(tokens))
        hidden = self.norm(hidden)
        return F.linear(hidden, self.decoder.weight)


def sentences(config, generator):
    """Each token is the one before it plus a stride that belongs to the sentence."""
    start = torch.randint(config.vocabulary, (config.batch, 1), generator=generator)
    stride = torch.randint(1, 4, (config.batch, 1), generator=generator)
    return (start + stride * torch.arange(config.context + 1)) % config.vocabulary


def run(config):
    torch.manual_seed(11)
    generator = torch.Generator().manual_seed(12)
    model = LanguageModel(config)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)
    average = None
    for step in range(config.steps):
        tokens = sentences(config, generator)
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        average = loss.item() if average is None else 0.9 * average + 0.1 * loss.item()
        if step % 40 == 39:
            print(f"step {step + 1}: {average:.3f}")


run(Config())
