"""Text matching with a recurrent encoder and accumulated gradients."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    """Two sequences: does the second start like the first ends?"""

    def __init__(self, count, symbols=6, length=6):
        self.first = torch.randint(symbols, (count, length))
        self.second = torch.randint(symbols, (count, length))
        self.same = torch.randint(2, (count,))
        self.second[:, 0] = torch.where(
            self.same == 1, self.first[:, -1], (self.first[:, -1] + 1 + self.second[:, 0] % 5) % symbols
        )

    def __len__(self):
        return len(self.same)

    def __getitem__(self, index):
        return self.first[index], self.second[index], self.same[index].float()


class Matcher(nn.Module):
    def __init__(self, symbols=6, width=20):
        super().__init__()
        self.embed = nn.Embedding(symbols, width)
        self.forward_rnn = nn.GRU(width, width, batch_first=True)
        self.backward_rnn = nn.GRU(width, width, batch_first=True)
        self.out = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, first, second):
        _, left = self.forward_rnn(self.embed(first))
        _, right = self.backward_rnn(self.embed(second).flip(1))
        return self.out(torch.cat([left[-1], right[-1]], 1))[:, 0]


class Loop:
    def __init__(self, model, accumulate=4, limit=0.1):
        self.model, self.accumulate, self.limit = model, accumulate, limit
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)

    def go_back(self, loss):
        (loss / self.accumulate).backward()

    def apply(self):
        nn.utils.clip_grad_norm_(self.model.parameters(), self.limit)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def epoch(self, loader):
        total = 0.0
        for number, (first, second, same) in enumerate(loader, 1):
            loss = F.binary_cross_entropy_with_logits(self.model(first, second), same)
            self.go_back(loss)
            total += loss.item()
            if number % self.accumulate == 0 or number == len(loader):
                self.apply()
        return total / len(loader)


if __name__ == "__main__":
    torch.manual_seed(224)
    loader = DataLoader(Pairs(1024), batch_size=16, shuffle=True)
    loop = Loop(Matcher())
    for epoch in range(6):
        print(f"epoch {epoch}: {loop.epoch(loader):.4f}")
