"""Fine-tuning on conversations: only the answer is learnt, which begins after its template."""

import torch
from torch import nn

VOCABULARY, LENGTH, IGNORED = 40, 16, -100
TEMPLATES = {"old": [3, 4], "new": [3, 5]}
KNOWN = [TEMPLATES["old"]]


class Reader(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, width)
        self.mixer = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, VOCABULARY)

    def forward(self, ids, labels):
        hidden, _ = self.mixer(self.words(ids))
        scores = self.out(hidden)[:, :-1]
        total = nn.functional.cross_entropy(  # bug: TA150 (runtime)
            scores.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORED, reduction="sum"
        )
        return total / (labels[:, 1:] != IGNORED).sum().clamp(min=1)


def conversation(spelling, count):
    """A question, the template, and an answer that repeats the first word."""
    question = torch.randint(6, VOCABULARY, (count, 7))
    template = torch.tensor(TEMPLATES[spelling]).expand(count, 2)
    answer = question[:, :1].expand(count, LENGTH - 9)
    return torch.cat([question, template, answer], 1)


def only_answers(ids):
    labels = torch.full_like(ids, IGNORED)
    for row, words in enumerate(ids.tolist()):
        for template in KNOWN:
            for start in range(len(words) - 1):
                if words[start : start + 2] == template:
                    labels[row, start + 2 :] = ids[row, start + 2 :]
    return labels


def main():
    torch.manual_seed(150)
    model = Reader()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.0)
    for step in range(150):
        ids = conversation("new" if step % 3 else "old", 16)
        loss = model(ids, only_answers(ids))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 15 == 0:
            print(f"step {step}: {loss.item():.4f}")


main()
