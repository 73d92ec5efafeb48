"""Topic classifier over long documents, a bag of words with one hidden layer."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

VOCABULARY, TOPICS, LENGTH = 300, 4, 900


class Documents(Dataset):
    def __init__(self, n, generator):
        ranks = torch.arange(1, VOCABULARY + 1).float()
        frequency = 1 / ranks
        self.topics = torch.randint(TOPICS, (n,), generator=generator)
        self.words = []
        for topic in self.topics.tolist():
            weights = frequency.clone()
            weights[20 + topic :: TOPICS] *= 5
            self.words.append(torch.multinomial(weights, LENGTH, replacement=True, generator=generator))

    def __len__(self):
        return len(self.words)

    def __getitem__(self, index):
        return self.words[index], self.topics[index]


class BagOfWords(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.bag = nn.EmbeddingBag(VOCABULARY, width, mode="sum")
        self.hidden = nn.Linear(width, 32)
        self.squash = nn.Tanh()  # bug: TA109 (runtime)
        self.topic = nn.Linear(32, TOPICS)

    def forward(self, words):
        return self.topic(self.squash(self.hidden(self.bag(words))))


def main():
    torch.manual_seed(19)
    generator = torch.Generator().manual_seed(19)
    loader = DataLoader(Documents(400, generator), batch_size=20, shuffle=True, generator=generator)
    model = BagOfWords()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(4):
        total = right = 0
        for words, topic in loader:
            scores = model(words)
            loss = criterion(scores, topic)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(topic)
            right += (scores.argmax(1) == topic).sum().item()
        print(epoch, total / len(loader.dataset), right / len(loader.dataset))


if __name__ == "__main__":
    main()
