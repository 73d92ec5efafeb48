"""Classifies spectrograms in decibels with a recurrent network."""

import torch
from torch import nn
from torch.utils.data import DataLoader

TOP_DB = 60.0


def to_decibel(power, top_db, reference_db=0.0):
    db = 10 * torch.log10(power + 1e-10)
    floor = reference_db + top_db
    return db.clamp(min=floor)


def clip(label, generator):
    power = torch.rand(20, 16, generator=generator) * 1e-3
    band = 3 * label
    power[:, band : band + 3] += torch.rand(20, 3, generator=generator)
    return power


def collate(items):
    spectra = torch.stack([to_decibel(power, TOP_DB) for power, _ in items])
    return spectra / 30 + 1, torch.tensor([label for _, label in items])


class Listener(nn.Module):
    def __init__(self, bands=16, width=24, classes=5):
        super().__init__()
        self.rnn = nn.LSTM(bands, width, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * width, classes)

    def forward(self, spectra):
        hidden, _ = self.rnn(spectra)
        return self.out(hidden.mean(1))


def main():
    torch.manual_seed(37)
    generator = torch.Generator().manual_seed(37)
    labels = torch.randint(5, (600,), generator=generator).tolist()
    items = [(clip(label, generator), label) for label in labels]
    loader = DataLoader(items, batch_size=20, shuffle=True, collate_fn=collate)
    model = Listener()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(3):
        losses = []
        for spectra, label in loader:
            logits = model(spectra)  # bug: TA302 (runtime)
            loss = nn.functional.cross_entropy(logits, label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print("epoch", epoch, sum(losses) / len(losses))


if __name__ == "__main__":
    main()
