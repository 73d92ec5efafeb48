"""Multi-label sound tagging; clips are laid over each other as augmentation."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def overlay(clips, labels, share):
    """Adds a random other clip to a part of the batch."""
    partner = torch.randperm(len(clips))
    chosen = torch.rand(len(clips), 1) < share
    clips = torch.where(chosen, clips + clips[partner], clips)
    labels = torch.where(chosen, torch.maximum(labels, labels[partner]), labels)
    return clips, labels


def recordings(n, bands=30, tags=6):
    labels = (torch.rand(n, tags) < 0.4).float()
    signature = torch.randn(tags, bands)
    return TensorDataset(0.5 * labels @ signature + 0.3 * torch.randn(n, bands), labels)


class Tagger(nn.Module):
    def __init__(self, bands=30, tags=6, hidden=64):
        super().__init__()
        self.hidden = nn.Linear(bands, hidden)
        self.dropout = nn.Dropout(0.1)
        self.tags = nn.Linear(hidden, tags)

    def forward(self, x):
        return self.tags(self.dropout(nn.functional.softplus(self.hidden(x))))


def main(share=0.5, epochs=4):
    torch.manual_seed(54)
    loader = DataLoader(recordings(1200), batch_size=30, shuffle=True)
    model = Tagger()
    optimizer = torch.optim.Adadelta(model.parameters(), lr=0.5)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for clips, labels in loader:
            clips, labels = overlay(clips, labels, share)
            loss = criterion(model(clips), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
