"""Ranking of candidates, evaluated by mean reciprocal rank."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class Ranker(nn.Module):
    def __init__(self, dim=8, width=32):
        super().__init__()
        self.query = nn.Linear(dim, width)
        self.candidate = nn.Linear(dim, width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, query, candidates):
        query = self.dropout(torch.tanh(self.query(query)))
        candidates = self.dropout(torch.tanh(self.candidate(candidates)))
        return torch.einsum("bd,bcd->bc", query, candidates)


def questions(count, dim=8, choices=6):
    query = torch.randn(count, dim)
    candidates = torch.randn(count, choices, dim)
    answer = (query[:, None] * candidates).sum(-1).argmax(1)
    return TensorDataset(query, candidates, answer)


def reciprocal_rank(scores, answers):
    own = scores.gather(1, answers[:, None])
    return (1.0 / (scores >= own).sum(1)).mean().item()


def validate(model, loader):
    model.eval()
    scores, answers = [], []
    for query, candidates, answer in loader:
        scores.append(model(query, candidates))  # bug: TA613
        answers.append(answer)
    return reciprocal_rank(torch.cat(scores), torch.cat(answers))


def main(epochs=5):
    torch.manual_seed(160)
    train_set, valid_set = random_split(questions(1400), [1120, 280])
    train_loader = DataLoader(train_set, batch_size=56, shuffle=True)
    valid_loader = DataLoader(valid_set, batch_size=56)
    model = Ranker()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for query, candidates, answer in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(query, candidates), answer)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(train_loader):.4f}, mrr {validate(model, valid_loader):.3f}")


if __name__ == "__main__":
    main()
