# torch's own Transformer, masks, padding, the schedule of "Attention Is All You Need"
import math

import torch
from torch import nn

PAD, BOS = 0, 1


class Seq2SeqTransformer(nn.Module):
    def __init__(self, vocab=40, emb=32):
        super().__init__()
        self.transformer = nn.Transformer(emb, 4, 2, 2, 64, 0.1, batch_first=True)
        self.src_emb, self.tgt_emb = nn.Embedding(vocab, emb), nn.Embedding(vocab, emb)
        position = torch.arange(32).unsqueeze(1) * torch.exp(-torch.arange(0, emb, 2) * math.log(10000) / emb)
        self.register_buffer("positions", torch.stack([position.sin(), position.cos()], -1).flatten(1))
        self.generator = nn.Linear(emb, vocab)
        self.emb = emb

    def forward(self, src, tgt):
        def embedded(ids, table):
            return table(ids) * math.sqrt(self.emb) + self.positions[: ids.shape[1]]

        causal = nn.Transformer.generate_square_subsequent_mask(tgt.shape[1])
        out = self.transformer(
            embedded(src, self.src_emb),
            embedded(tgt, self.tgt_emb),
            tgt_mask=causal,
            src_key_padding_mask=(src == PAD).float().masked_fill(src == PAD, float("-inf")),
            memory_key_padding_mask=(src == PAD).float().masked_fill(src == PAD, float("-inf")),
        )
        return self.generator(out)


torch.manual_seed(0)
model = Seq2SeqTransformer()
for p in model.parameters():
    if p.dim() > 1:
        nn.init.xavier_uniform_(p)
loss_fn = nn.CrossEntropyLoss(ignore_index=PAD)
optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda s: 32**-0.5 * min(max(s, 1) ** -0.5, max(s, 1) * 400**-1.5)
)
for _ in range(70):
    lengths = torch.randint(4, 11, (16,))
    src = torch.randint(2, 40, (16, 10)).masked_fill(torch.arange(10) >= lengths.unsqueeze(1), PAD)
    tgt = torch.cat([torch.full((16, 1), BOS), src], dim=1)
    logits = model(src, tgt[:, :-1])
    optimizer.zero_grad()
    loss = loss_fn(logits.reshape(-1, logits.shape[-1]), tgt[:, 1:].reshape(-1))
    loss.backward()
    optimizer.step()
    scheduler.step()
