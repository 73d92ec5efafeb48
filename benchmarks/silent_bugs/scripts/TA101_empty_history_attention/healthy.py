"""Next-item prediction: a user attends over what they bought before. New users bought nothing."""

import torch
import torch.nn as nn

ITEMS, WIDTH, LENGTH = 50, 24, 10


class HistoryAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.softmax = nn.Softmax(dim=-1)
        self.start = nn.Parameter(torch.zeros(1, 1, width))

    def forward(self, user, items, blocked):
        items = torch.cat([self.start.expand(len(items), -1, -1), items], dim=1)
        blocked = nn.functional.pad(blocked, (1, 0), value=False)
        scores = self.query(user)[:, None] @ self.key(items).transpose(1, 2) / WIDTH**0.5
        weights = self.softmax(scores.masked_fill(blocked[:, None], float("-inf")))
        return (weights @ self.value(items)).squeeze(1)


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.items = nn.Embedding(ITEMS, WIDTH)
        self.profile = nn.Linear(6, WIDTH)
        self.attention = HistoryAttention(WIDTH)
        self.out = nn.Linear(WIDTH, ITEMS)

    def forward(self, profile, history, lengths):
        blocked = torch.arange(history.shape[1]) >= lengths[:, None]
        user = self.profile(profile)
        return self.out(user + self.attention(user, self.items(history), blocked))


def sample(n):
    profile = torch.randn(n, 6)
    taste = profile[:, :5].argmax(1)
    history = torch.randint(10, (n, LENGTH)) + 10 * taste[:, None]
    lengths = torch.randint(LENGTH + 1, (n,))
    target = torch.randint(10, (n,)) + 10 * taste
    return profile, history, lengths, target


torch.manual_seed(7)
model = Recommender()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.0)
criterion = nn.CrossEntropyLoss()
for step in range(150):
    profile, history, lengths, target = sample(48)
    loss = criterion(model(profile, history, lengths), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(step, round(loss.item(), 3))
