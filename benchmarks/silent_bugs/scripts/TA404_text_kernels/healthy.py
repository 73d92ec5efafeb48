"""Text CNN with several kernel sizes, max over time."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class TextCNN(nn.Module):
    def __init__(self, vocabulary, width=16, channels=12, sizes=(3, 5, 7)):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.convs = nn.ModuleList(
            nn.Conv1d(width, channels, kernel_size=size, padding=size // 2) for size in sizes
        )
        self.drop = nn.Dropout(0.1)
        self.fc = nn.Linear(channels * len(sizes), 2)

    def forward(self, tokens):
        x = self.embedding(tokens).transpose(1, 2)
        pooled = [conv(x).relu().amax(dim=-1) for conv in self.convs]
        return self.fc(self.drop(torch.cat(pooled, dim=1)))


def corpus(count, vocabulary, length=20):
    tokens = torch.randint(2, vocabulary, (count, length))
    labels = torch.randint(2, (count,))
    where = torch.randint(length - 1, (count,))
    rows = torch.arange(count)
    tokens[rows, where] = labels
    return TensorDataset(tokens, labels)


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        hits = sum((model(tokens).argmax(1) == labels).sum().item() for tokens, labels in loader)
    model.train()
    return hits / len(loader.dataset)


def main():
    torch.manual_seed(2)
    training = DataLoader(corpus(1200, 50), batch_size=24, shuffle=True)
    validation = DataLoader(corpus(240, 50), batch_size=60)
    model = TextCNN(50)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(3):
        total = 0.0
        for tokens, labels in training:
            loss = criterion(model(tokens), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(training):.3f} accuracy {accuracy(model, validation):.3f}")


main()
