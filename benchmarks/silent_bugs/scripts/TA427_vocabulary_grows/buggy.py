"""Continual learning of word pairs: the vocabulary grows while the model is trained."""

import torch
from torch import nn


class PairModel(nn.Module):
    def __init__(self, words, width=12):
        super().__init__()
        self.table = nn.Embedding(words, width)
        self.join = nn.Bilinear(width, width, 8)
        self.score = nn.Linear(8, 1)

    def grow(self, words):
        old = self.table
        self.table = nn.Embedding(words, old.embedding_dim)  # bug: TA427
        with torch.no_grad():
            self.table.weight[: old.num_embeddings] = old.weight

    def forward(self, left, right):
        return self.score(torch.tanh(self.join(self.table(left), self.table(right)))).squeeze(-1)


class Learner:
    def __init__(self, words, lr=0.01):
        self.lr = lr
        self.model = PairModel(words)
        self.reset_optimizer()

    def reset_optimizer(self):
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=self.lr)

    def extend(self, words):
        self.model.grow(words)

    def learn(self, steps, words, colour):
        total = 0.0
        for _ in range(steps):
            left, right = torch.randint(words, (2, 64))
            same = (colour[left] == colour[right]).float()
            loss = nn.functional.binary_cross_entropy_with_logits(self.model(left, right), same)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / steps


def main():
    torch.manual_seed(73)
    colour = torch.randint(2, (60,))
    learner = Learner(20)
    for words, steps in ((20, 60), (40, 80), (60, 80)):
        if words > learner.model.table.num_embeddings:
            learner.extend(words)
        print(f"{words} words: loss {learner.learn(steps, words, colour):.3f}")


if __name__ == "__main__":
    main()
