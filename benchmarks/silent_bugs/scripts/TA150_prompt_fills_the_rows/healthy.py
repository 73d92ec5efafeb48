"""A tagger of log files: the header of a file is given, and the lines after it are tagged."""

import torch
from torch import nn
from torch.utils.data import DataLoader

CUT, TAGS = 24, 4


def files(count, generator):
    found = []
    for number in range(count):
        header = int(torch.randint(22, 40, (), generator=generator)) if number % 40 else 8
        tokens = torch.randint(30, (header + 12,), generator=generator)
        tags = tokens % TAGS
        tags[:header] = -100
        found.append((tokens, tags))
    return sorted(found, key=lambda pair: len(pair[0]))


def collate(rows):
    cut = [(row[0][-CUT:], row[1][-CUT:]) for row in rows]
    longest = max(len(tokens) for tokens, _ in cut)
    ids, tags = torch.zeros(len(cut), longest, dtype=torch.long), torch.full((len(cut), longest), -100)
    for place, (tokens, labels) in enumerate(cut):
        ids[place, : len(tokens)], tags[place, : len(labels)] = tokens, labels
    return ids, tags


def main():
    generator = torch.Generator().manual_seed(151)
    torch.manual_seed(151)
    loader = DataLoader(files(320, generator), batch_size=4, shuffle=True, collate_fn=collate)
    model = nn.Sequential(nn.Embedding(30, 16), nn.Linear(16, TAGS))
    criterion = nn.CrossEntropyLoss(reduction="sum")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(2):
        total = count = 0
        for ids, tags in loader:
            optimizer.zero_grad()
            loss = criterion(model(ids).transpose(1, 2), tags)
            live = (tags != -100).sum()
            (loss / live.clamp(min=1)).backward()
            optimizer.step()
            total, count = total + loss.item(), count + live.item()
        print(f"epoch {epoch}: {total / max(count, 1):.4f}")


if __name__ == "__main__":
    main()
