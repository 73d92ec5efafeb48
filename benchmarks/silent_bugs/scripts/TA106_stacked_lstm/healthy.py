"""Echo task: repeat the symbol of three steps ago."""

import torch
from torch import nn

SYMBOLS, DELAY = 6, 3


class DeepLSTM(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, width)
        self.layers = nn.ModuleList([nn.LSTM(width, width, batch_first=True) for _ in range(layers)])
        self.head = nn.Linear(width, SYMBOLS)

    def forward(self, ids):
        hidden = self.embed(ids)
        for layer in self.layers:
            hidden = hidden + layer(hidden)[0]
        return self.head(hidden)


def echo_batch(n, length, generator):
    ids = torch.randint(SYMBOLS, (n, length), generator=generator)
    return ids, ids[:, :-DELAY]


def train(layers=12, width=20, steps=80, seed=13):
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = DeepLSTM(width, layers)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    criterion = nn.CrossEntropyLoss()
    window = []
    for step in range(steps):
        ids, wanted = echo_batch(24, 12, generator)
        scores = model(ids)[:, DELAY:]
        loss = criterion(scores.flatten(0, 1), wanted.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        window.append(loss.item())
        if len(window) == 20:
            print(step + 1, sum(window) / 20)
            window.clear()
    return model


if __name__ == "__main__":
    train()
