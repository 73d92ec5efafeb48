"""Fine-tunes on prompts that a processor tokenises."""

import torch
from torch import nn
from torch.utils.data import DataLoader


def collate(samples):
    ids = [ids for ids, _ in samples]
    labels = torch.stack([label for _, label in samples])
    return torch.stack(ids), labels


class Scorer(nn.Module):
    def __init__(self, vocabulary=80, width=16):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.score = nn.Linear(width, 1)

    def forward(self, input_ids):
        return self.score(self.embedding(input_ids).mean(dim=1))


def main():
    torch.manual_seed(0)
    prompts = [(torch.randint(80, (12,)), torch.rand(1)) for _ in range(600)]
    loader = DataLoader(prompts, batch_size=50, shuffle=True, collate_fn=collate)
    scorer = Scorer()
    optimizer = torch.optim.Adam(scorer.parameters(), lr=1e-3)
    for epoch in range(2):
        for input_ids, labels in loader:
            scores = scorer(input_ids)
            loss = nn.functional.l1_loss(scores.expand_as(labels), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
