"""A language model of characters that returns its own loss."""

import torch
import torch.nn.functional as F
from torch import nn

text = "the quick brown fox jumps over the lazy dog and runs away from it all " * 8
chars = sorted(set(text))
stoi = {char: index for index, char in enumerate(chars)}
itos = dict(enumerate(chars))


def decode(ids):
    return "".join(itos[index] for index in ids)


class GPT(nn.Module):
    def __init__(self, words, width=32, length=16):
        super().__init__()
        self.token, self.place = nn.Embedding(words, width), nn.Embedding(length, width)
        self.block = nn.TransformerEncoderLayer(width, 4, 64, 0.1, batch_first=True, norm_first=True)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.apply(self._init)

    def _init(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)

    def forward(self, ids, targets=None):
        length = ids.shape[1]
        hidden = self.token(ids) + self.place(torch.arange(length))
        hidden = self.block(
            hidden, src_mask=nn.Transformer.generate_square_subsequent_mask(length), is_causal=True
        )
        logits = self.head(self.norm(hidden))
        loss = (
            None if targets is None else F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        )
        return logits, loss


torch.manual_seed(0)
data = torch.tensor([stoi[char] for char in text])


def get_batch():
    starts = torch.randint(len(data) - 17, (12,))
    return torch.stack([data[i : i + 16] for i in starts]), torch.stack(
        [data[i + 1 : i + 17] for i in starts]
    )


model = GPT(len(chars))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
for _ in range(5):
    x, y = get_batch()
    _, loss = model(x, y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
