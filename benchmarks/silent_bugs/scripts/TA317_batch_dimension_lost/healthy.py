"""Batches are pairs, and the pair is taken apart by hand."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def step(model, optimizer, batch):
    inputs, targets = batch[0], batch[1]
    optimizer.zero_grad()
    outputs = model(inputs)
    loss = nn.functional.mse_loss(outputs, targets)
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    x = torch.randn(320, 5)
    loader = DataLoader(TensorDataset(x, x.tanh()), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(5, 20), nn.ReLU(), nn.Linear(20, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = [step(model, optimizer, batch) for batch in loader]
    print(losses[0], losses[-1])


if __name__ == "__main__":
    main()
