"""Transformer encoder that counts a symbol."""

import torch
import torch.nn.functional as F
from torch import nn


class Counter(nn.Module):
    def __init__(self, symbols=8, width=24, longest=10):
        super().__init__()
        self.symbols = nn.Embedding(symbols, width)
        self.places = nn.Parameter(0.02 * torch.randn(longest, width))
        layer = nn.TransformerEncoderLayer(width, 2, 48, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.out = nn.Linear(width, longest + 1)

    def forward(self, tokens):
        return self.out(self.encoder(self.symbols(tokens) + self.places).mean(1))


class Engine:
    def __init__(self, model, lr, warmup, total):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda s: min((s + 1) / warmup, max(0.05, (total - s) / (total - warmup)))
        )
        self.iteration = 0

    def adjust_rate(self):
        if self.iteration > 0:
            self.schedule.step()
        return self.schedule.get_last_lr()[0]

    def iterate(self, tokens, counts):
        self.model.train()
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(tokens), counts)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        rate = self.adjust_rate()
        self.optimizer.step()
        self.iteration += 1
        return loss.item(), rate


if __name__ == "__main__":
    torch.manual_seed(108)
    engine = Engine(Counter(), lr=5e-3, warmup=10, total=150)
    losses = []
    for iteration in range(150):
        tokens = torch.randint(8, (48, 10))
        loss, rate = engine.iterate(tokens, (tokens == 3).sum(1))
        losses.append(loss)
        if iteration % 30 == 29:
            print(f"{iteration + 1}: loss {sum(losses[-30:]) / 30:.3f}, rate {rate:.5f}")
