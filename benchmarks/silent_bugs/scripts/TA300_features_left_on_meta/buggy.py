"""Builds a tagger without allocating it twice, then trains it on the host."""

import torch
from torch import nn

LENGTH, WORDS, TAGS, WIDTH = 12, 60, 5, 32


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Linear(2, WIDTH)
        self.mix = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.tags = nn.Linear(WIDTH, TAGS)

    def forward(self, ids, positions):
        x = self.words(ids) + self.places(positions)
        return self.tags(self.mix(x)[0])

    def reset(self):
        for module in self.children():
            module.reset_parameters()


def position_features(length):
    place = torch.arange(length) / length
    return torch.stack([place, 1 - place], dim=1)


def build():
    with torch.device("meta"):
        model = Tagger()
        positions = position_features(LENGTH)
    model.to_empty(device="cpu")
    model.reset()
    return model, positions


def main():
    torch.manual_seed(33)
    model, positions = build()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    criterion = nn.CrossEntropyLoss()
    for step in range(100):
        ids = torch.randint(WORDS, (16, LENGTH))
        tags = (ids + (torch.arange(LENGTH) >= LENGTH // 2)) % TAGS
        scores = model(ids, positions)  # bug: TA300 (runtime)
        loss = criterion(scores.transpose(1, 2), tags)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
