"""Classifies sequences of different lengths, packed: RMSprop, and a learning rate that falls when nothing improves."""

import sys

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader


class Reader(nn.Module):
    def __init__(self, vocabulary=30, width=12):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=0)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True, dropout=0.1)
        self.out = nn.Linear(width, 2)

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(self.embedding(ids), lengths, batch_first=True, enforce_sorted=False)
        _, (hidden, _) = self.lstm(packed)
        return self.out(hidden[-1])


def collate(samples):
    rows, labels = zip(*samples, strict=True)
    lengths = torch.tensor([len(row) for row in rows])
    return pad_sequence(rows, batch_first=True), lengths, torch.tensor(labels)


def main(seed=0, batch_size=16):
    torch.manual_seed(seed)
    rows = [torch.randint(1, 30, (int(length),)) for length in torch.randint(3, 15, (140,))]
    samples = [(row, int(row[0] > 15)) for row in rows]
    loader = DataLoader(samples[:110], batch_size=batch_size, shuffle=True, collate_fn=collate)
    held_out = DataLoader(samples[110:], batch_size=batch_size, collate_fn=collate)
    model = Reader()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(4):
        model.train()
        for ids, lengths, labels in loader:
            loss = criterion(model(ids, lengths), labels)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_value_(model.parameters(), 1.0)
            optimizer.step()
        model.eval()
        with torch.inference_mode():
            losses = [criterion(model(ids, lengths), labels).item() for ids, lengths, labels in held_out]
        scheduler.step(sum(losses) / len(losses))
        print(epoch, sum(losses) / len(losses))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
