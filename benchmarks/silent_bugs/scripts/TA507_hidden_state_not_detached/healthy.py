"""A character model over one long text."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    rnn = nn.LSTM(10, 24, batch_first=True)
    head = nn.Linear(24, 10)
    optimizer = torch.optim.SGD([*rnn.parameters(), *head.parameters()], lr=0.01)
    text = nn.functional.one_hot(torch.randint(10, (4, 600)), 10).float()
    hidden, cell = torch.zeros(1, 4, 24), torch.zeros(1, 4, 24)
    for start in range(0, 500, 20):
        piece = text[:, start : start + 20]
        following = text[:, start + 1 : start + 21].argmax(dim=2)
        outputs, (hidden, cell) = rnn(piece, (hidden.detach(), cell.detach()))
        loss = nn.functional.cross_entropy(head(outputs).flatten(0, 1), following.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
