"""Fine-tunes a small encoder with linear warm-up and decay."""

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

BASE_LR, WARMUP, TOTAL = 2e-5, 10, 210


class Encoder(nn.Module):
    def __init__(self, width=64, vocabulary=80):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.classify = nn.Linear(width, 3)

    def forward(self, ids):
        return self.classify(self.encoder(self.embed(ids)).amax(1))


def learning_rate(step):
    if step < WARMUP:
        return (step + 1) / WARMUP
    return (TOTAL - step) / (TOTAL - WARMUP)


def sentences(n):
    ids = torch.randint(80, (n, 12))
    topic = torch.randint(3, (n,))
    ids[:, ::2] = ids[:, ::2] // 4 + 20 * topic[:, None]
    return ids, topic


def main():
    torch.manual_seed(16)
    model = Encoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=BASE_LR)
    schedule = LambdaLR(optimizer, learning_rate)
    total = 0.0
    for step in range(TOTAL):
        ids, topic = sentences(16)
        loss = nn.functional.cross_entropy(model(ids), topic)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item()
        if step % 35 == 34:
            print(step + 1, total / 35, schedule.get_last_lr())
            total = 0.0


if __name__ == "__main__":
    main()
