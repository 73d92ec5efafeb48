"""Tags of words, by a recurrent network that reads a sentence both ways."""

import torch
from torch import nn

WORDS, TAGS = 60, 6


class Tagger(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.embed = nn.Embedding(WORDS, width)
        self.read = nn.LSTM(width, width, bidirectional=True, batch_first=True)
        self.tag = nn.Linear(2 * width, TAGS)
        self.normalise = nn.LogSoftmax(dim=1)

    def forward(self, sentences):
        hidden, _ = self.read(self.embed(sentences))
        return self.normalise(self.tag(hidden))


def main():
    torch.manual_seed(524)
    model, criterion = Tagger(), nn.NLLLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(120):
        sentences = torch.randint(WORDS, (12, 9))
        tags = (sentences + sentences.roll(1, 1)) % TAGS
        scores = model(sentences)
        loss = criterion(scores.reshape(-1, TAGS), tags.reshape(-1))  # bug: TA523 (runtime)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: {loss.item():.4f}")


main()
