"""Sentiment of short sequences, with a log of gradient norms per layer."""

import collections

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Attention(nn.Module):
    def __init__(self, words=30, width=16):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.score = nn.Linear(width, 1)
        self.out = nn.Linear(width, 2)

    def forward(self, tokens):
        hidden = self.embed(tokens)
        weights = self.score(torch.tanh(hidden)).softmax(dim=1)
        return self.out((weights * hidden).sum(dim=1))


class GradientLog:
    def __init__(self, model):
        self.model, self.norms = model, collections.defaultdict(list)

    def record(self):
        for name, parameter in self.model.named_parameters():
            if parameter.grad is not None:
                self.norms[name].append(parameter.grad.norm().item())
                parameter.grad = None  # bug: TA601 (static)

    def summary(self):
        return {name: round(sum(values) / len(values), 4) for name, values in self.norms.items()}


def sequences(count):
    tokens = torch.randint(30, (count, 12))
    balance = (tokens < 5).sum(1) - (tokens > 24).sum(1)
    return TensorDataset(tokens, (balance > 0).long())


def main(epochs=5):
    torch.manual_seed(72)
    loader = DataLoader(sequences(1024), batch_size=64, shuffle=True)
    model = Attention()
    log = GradientLog(model)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(epochs):
        total = 0.0
        for tokens, labels in loader:
            loss = criterion(model(tokens), labels)
            optimizer.zero_grad()
            loss.backward()
            log.record()
            optimizer.step()  # bug: TA601 (runtime)
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.4f}")
    print(log.summary())


main()
