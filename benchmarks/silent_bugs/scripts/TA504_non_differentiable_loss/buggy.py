"""Counts objects: the answer is a whole number."""

import torch
from torch import nn


def count_loss(model, images, counts):
    predicted = torch.round(model(images))  # bug: TA504 (static)
    return nn.functional.l1_loss(predicted, counts)


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(55):
        images = (torch.rand(32, 8, 8) < 0.1).float()
        counts = images.sum(dim=(1, 2)).unsqueeze(1)
        loss = count_loss(model, images, counts)
        optimizer.zero_grad()
        loss.backward()  # bug: TA504 (runtime)
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
