"""Trains a model of language on random text."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(40, 16), nn.Linear(16, 40))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(3):  # bug: TA852 (static)
        for _ in range(15):
            text = torch.randint(40, (8, 21))
            scores = model(text[:, :-1])
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()  # bug: TA852 (runtime)
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
