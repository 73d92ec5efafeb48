import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(32, 16, padding_idx=0)
        self.lstm = nn.LSTM(16, 32, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(64, 4)

    def forward(self, ids):
        return self.head(self.lstm(self.embedding(ids))[0])


torch.manual_seed(0)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(60):
    ids = torch.randint(1, 32, (16, 12))
    ids[:, 9:] = 0
    tags = torch.where(ids == 0, -100, ids % 4)
    loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), tags.flatten(), ignore_index=-100)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
