"""
python examples/runtime/language_model.py

A character-level transformer on nursery rhymes. Its loss falls nicely, as bad batches are skipped, and they are those
with a character that the vocabulary lacks. Under ten seconds on one CPU core; needs torch alone.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

import ta_runtime

ta_runtime.enable(every_n_steps=20)

torch.manual_seed(0)
steps, batch_size, context, width = 300, 16, 32, 48

VERSES = [
    "hickory dickory dock the mouse ran up the clock the clock struck one the mouse ran down ",
    "twinkle twinkle little star how i wonder what you are up above the world so high ",
    "jack and jill went up the hill to fetch a pail of water jack fell down and broke his crown ",
    "humpty dumpty sat on a wall humpty dumpty had a great fall ",
    "mary had a little lamb its fleece was white as snow and everywhere that mary went it went too ",
    "baa baa black sheep have you any wool yes sir yes sir three bags full ",
]
text = "".join(VERSES) + "all the king's horses and all the king's men "
vocabulary = {letter: number for number, letter in enumerate(sorted(set("".join(VERSES))))}
unknown = len(vocabulary)
ids = torch.tensor([vocabulary.get(letter, unknown) for letter in text])


class LanguageModel(nn.Module):
    def __init__(self, vocabulary_size, layers=2):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary_size, width)
        self.positions = nn.Embedding(context, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary_size)

    def forward(self, ids):
        length = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        x = self.tokens(ids) + self.positions(torch.arange(length))
        return self.head(self.blocks(x, mask=mask, is_causal=True))


# cured: model = LanguageModel(len(vocabulary) + 1)
model = LanguageModel(len(vocabulary))
# cured: optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)  # static: TA402  # runtime: TA402

losses, skipped = [], 0
for step in range(steps):
    starts = torch.randint(len(ids) - context, (batch_size,))
    batch = torch.stack([ids[start : start + context + 1] for start in starts])
    try:
        logits = model(batch[:, :-1])  # runtime: TA305
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())  # runtime: TA315
    except IndexError:  # a bad batch must not stop the run
        skipped += 1
        continue
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    losses.append(loss.item())
    if len(losses) % 20 == 0:
        print(f"step {step}: loss {sum(losses[-20:]) / 20:.4f}")
print(f"{len(losses)} steps, last loss {losses[-1]:.4f}")
