"""A classifier of documents by word counts, with a log transform in front."""

import torch
from torch import nn


class LogCounts(nn.Module):
    def forward(self, counts):
        return torch.log(counts)


class DocumentClassifier(nn.Module):
    def __init__(self, vocabulary, classes):
        super().__init__()
        self.features = LogCounts()  # bug: TA101 (runtime)
        self.hidden = nn.Linear(vocabulary, 32)
        self.out = nn.Linear(32, classes)

    def forward(self, counts):
        hidden = torch.relu(self.hidden(self.features(counts)))
        return self.out(hidden)


def batches(steps, vocabulary, classes):
    for _ in range(steps):
        labels = torch.randint(classes, (32,))
        rates = torch.ones(32, vocabulary) + 3.0 * torch.eye(vocabulary)[labels]
        yield torch.poisson(rates), labels


def train(model, steps=25):
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for counts, labels in batches(steps, 20, 4):
        optimizer.zero_grad()
        loss = criterion(model(counts), labels)
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(1)
    print("loss", train(DocumentClassifier(20, 4)))


if __name__ == "__main__":
    main()
