"""
python examples/language_model.py

A character-level transformer (two blocks, 64 wide) that learns to write the little sentences generated below.
The loss falls all the way. Two planted bugs, each marked on its line.
Under ten seconds on one CPU core; needs torch alone.
"""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1337)
random.seed(1337)
epochs, batch_size, block_size, n_embd, n_head, lr = 16, 32, 32, 64, 4, 1e-3

# -----------------------------------------------------------------------------
# data: sentences whose verb agrees with the subject
NOUNS = ["engineer", "student", "reviewer", "gradient", "tensor", "kernel"]
VERBS = ["read", "write", "trust", "question", "measure", "forget"]


def sentence():
    plural = random.random() < 0.5
    subject, verb, thing = random.choice(NOUNS), random.choice(VERBS), random.choice(NOUNS)
    if plural:
        return f"the {subject}s {verb} the {thing}.\n"
    return f"the {subject} {verb}s the {thing}.\n"


text = "".join(sentence() for _ in range(350))
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text])
split = int(0.9 * len(data))
train_data, val_data = data[:split], data[split:]


def blocks(data):
    """Cut a text into inputs and targets [n, block_size], the targets one character ahead."""
    starts = torch.arange(0, len(data) - block_size - 1, block_size)
    x = torch.stack([data[i : i + block_size] for i in starts])
    y = torch.stack([data[i + 1 : i + 1 + block_size] for i in starts])
    return x, y


# -----------------------------------------------------------------------------
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.qkv = nn.Linear(n_embd, 3 * n_embd)
        self.proj = nn.Linear(n_embd, n_embd)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (
            t.view(B, T, n_head, C // n_head).transpose(1, 2) for t in self.qkv(self.ln1(x)).chunk(3, dim=-1)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(B, T, C))
        return x + self.mlp(self.ln2(x))


class CharTransformer(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.blocks = nn.Sequential(Block(), Block())
        self.ln = nn.LayerNorm(n_embd)
        self.head = nn.Linear(n_embd, vocab_size)

    def forward(self, idx):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1), device=idx.device))
        return self.head(self.ln(self.blocks(x)))


model = CharTransformer(len(chars))
optimizer = torch.optim.Adam(model.parameters(), lr=lr)


@torch.no_grad()
def validate():
    model.eval()
    x, y = blocks(val_data)
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item()


@torch.no_grad()
def write(prompt, n):
    model.eval()
    idx = torch.tensor([[stoi[c] for c in prompt]])
    for _ in range(n):
        probs = F.softmax(model(idx[:, -block_size:])[:, -1], dim=-1)
        idx = torch.cat([idx, torch.multinomial(probs, 1)], dim=1)
    return "".join(chars[i] for i in idx[0])


# -----------------------------------------------------------------------------
x, y = blocks(train_data)
print(
    f"{len(text)} characters, {len(chars)} distinct; {sum(p.numel() for p in model.parameters())} parameters"
)
for epoch in range(epochs):
    model.train()
    optimizer.zero_grad()
    total_loss, steps = 0.0, 0
    for batch in torch.randperm(len(x)).split(batch_size):
        logits = model(x[batch])
        loss = F.cross_entropy(logits.flatten(0, 1), y[batch].flatten())
        loss.backward()
        optimizer.step()  # static: TA602
        total_loss += loss  # static: TA206
        steps += 1
    print(f"epoch {epoch:2d}: train loss {total_loss / steps:.4f}, val loss {validate():.4f}")

print(write("the ", 120))
