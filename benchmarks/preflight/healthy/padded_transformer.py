"""A transformer over padded ids, with a mask, and batches by name."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Sentences(Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, index):
        length = 4 + index % 9
        return torch.randint(1, 60, (length,), generator=torch.Generator().manual_seed(index)), index % 2


def collate(samples):
    ids = nn.utils.rnn.pad_sequence([ids for ids, _ in samples], batch_first=True)
    return {
        "input_ids": ids,
        "attention_mask": (ids != 0).long(),
        "labels": torch.tensor([y for _, y in samples]),
    }


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(60, 32, padding_idx=0)
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.head = nn.Linear(32, 2)

    def forward(self, input_ids, attention_mask):
        hidden = self.layer(self.table(input_ids), src_key_padding_mask=attention_mask == 0)
        mask = attention_mask[..., None]
        return self.head((hidden * mask).sum(1) / mask.sum(1))


torch.manual_seed(0)
loader = DataLoader(Sentences(), batch_size=16, shuffle=True, collate_fn=collate)
model = Encoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for batch in loader:
    labels = batch.pop("labels")
    loss = F.cross_entropy(model(**batch), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
