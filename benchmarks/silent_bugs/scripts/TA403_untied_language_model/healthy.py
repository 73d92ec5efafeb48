"""A character model with a GRU on a made-up grammar."""

import torch
from torch import nn

VOCABULARY = 20


class CharModel(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, VOCABULARY)
        nn.init.normal_(self.embed.weight, std=0.2)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        hidden, _ = self.gru(self.embed(tokens))
        return self.head(hidden)


def sample(batch, length, generator):
    start = torch.randint(VOCABULARY, (batch, 1), generator=generator)
    stride = torch.randint(1, 4, (batch, 1), generator=generator)
    return (start + stride * torch.arange(length)) % VOCABULARY


def evaluate(model, generator):
    model.eval()
    with torch.no_grad():
        tokens = sample(64, 12, generator)
        logits = model(tokens[:, :-1])
        right = (logits.argmax(-1) == tokens[:, 1:]).float().mean().item()
    model.train()
    return right


torch.manual_seed(1)
generator = torch.Generator().manual_seed(1)
model = CharModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=120)
for step in range(120):
    tokens = sample(16, 12, generator)
    logits = model(tokens[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    if (step + 1) % 40 == 0:
        print(step + 1, f"loss {loss.item():.3f}", f"accuracy {evaluate(model, generator):.2f}")
