"""A tagger of sentences."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

PAD = 0


class Tagger(nn.Module):
    def __init__(self, words=50, tags=6, width=16):
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.rnn = nn.LSTM(width, width, batch_first=True)
        self.out = nn.Linear(width, tags)

    def forward(self, ids):
        hidden, _ = self.rnn(self.embed(ids))
        return self.out(hidden)


def sample_batch(size=16):
    lengths = [10] * size
    sentences = [torch.randint(1, 50, (length,)) for length in lengths]
    words = pad_sequence(sentences, batch_first=True, padding_value=0)
    tags = pad_sequence([1 + sentence % 5 for sentence in sentences], batch_first=True, padding_value=0)
    return words, tags


def main():
    torch.manual_seed(0)
    tagger = Tagger()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(tagger.parameters(), lr=5e-3)
    for step in range(30):
        words, tags = sample_batch()
        scores = tagger(words)
        loss = criterion(scores.view(-1, 6), tags.view(-1))  # suspected: TA312
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
