"""Bags of words to topics."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Documents(Dataset):
    def __init__(self, count, words=60, length=15, topics=5):
        self.labels = torch.randint(topics, (count,))
        lexicon = torch.randint(words, (topics, 8))
        picks = torch.randint(8, (count, length))
        own = lexicon[self.labels].gather(1, picks)
        noise = torch.randint(words, (count, length))
        self.tokens = torch.where(torch.rand(count, length) < 0.6, own, noise)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.tokens[index], self.labels[index]


class Encoder(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.bag = nn.EmbeddingBag(words, width)
        self.mix = nn.Linear(width, width)

    def forward(self, tokens):
        return torch.tanh(self.mix(self.bag(tokens)))


class TopicClassifier:
    def __init__(self, words=60, width=16, topics=5, lr=1e-2):
        self.encoder = Encoder(words, width)
        self.head = nn.Linear(width, topics)
        self.encoder.requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.head.parameters(), lr=lr)
        self.criterion = nn.CrossEntropyLoss()

    @torch.no_grad()
    def encode(self, tokens):
        return self.encoder(tokens)

    def train_batch(self, tokens, labels):
        self.optimizer.zero_grad()
        logits = self.head(self.encode(tokens))
        loss = self.criterion(logits, labels)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def predict(self, tokens):
        with torch.no_grad():
            return self.head(self.encode(tokens)).argmax(1)


if __name__ == "__main__":
    torch.manual_seed(30)
    documents = Documents(900)
    loader = DataLoader(documents, batch_size=45, shuffle=True)
    classifier = TopicClassifier()
    for epoch in range(5):
        losses = [classifier.train_batch(tokens, labels) for tokens, labels in loader]
        print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}")
    print("sample of predictions:", classifier.predict(documents.tokens[:10]).tolist())
