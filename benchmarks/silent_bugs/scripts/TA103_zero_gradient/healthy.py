"""Attention pooling over the steps of a sequence."""

import torch
import torch.nn as nn


class AttentionPool(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.score = nn.Linear(width, 1)

    def forward(self, sequence):  # (batch, time, width)
        weights = torch.softmax(self.score(sequence), dim=1)
        return (weights * sequence).sum(dim=1)


class SequenceClassifier(nn.Module):
    def __init__(self, inputs=6, width=16, classes=3):
        super().__init__()
        self.encoder = nn.GRU(inputs, width, batch_first=True)
        self.pool = AttentionPool(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        hidden, _ = self.encoder(x)
        return self.head(self.pool(hidden))


def main():
    torch.manual_seed(0)
    net = SequenceClassifier()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss()
    for step in range(60):
        x = torch.randn(32, 12, 6)
        y = x.sum(dim=1)[:, :3].argmax(dim=1)
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
