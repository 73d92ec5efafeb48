"""Jitters a learned prompt now and then."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    prompt = torch.zeros(1, 8, requires_grad=True)
    head = nn.Linear(8, 2)
    optimizer = torch.optim.SGD([prompt, *head.parameters()], lr=0.1)
    for step in range(1, 41):
        x = torch.randn(16, 8)
        loss = nn.functional.cross_entropy(head(x + prompt), (x[:, 0] > 0.3).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            prompt += 0.01 * torch.randn(1, 8)  # bug: TA424
    print(loss.item())


if __name__ == "__main__":
    main()
