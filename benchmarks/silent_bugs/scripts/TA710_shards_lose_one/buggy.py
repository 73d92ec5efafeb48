"""Trains a regression network and writes its state in shards."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def shards(state, limit):
    current, size = {}, 0
    for name, tensor in state.items():
        if size + tensor.numel() > limit and current:
            yield current
            current, size = {}, 0
        else:
            current[name] = tensor
            size += tensor.numel()
    if current:
        yield current


def save(model, limit=900):
    for number, shard in enumerate(shards(model.state_dict(), limit)):
        torch.save(shard, f"model-{number:02d}.pt")  # bug: TA710 (runtime)
        print(f"model-{number:02d}.pt: {len(shard)} tensors")


class Net(nn.Module):
    def __init__(self, features=6, width=24):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(features, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
        )
        self.value = nn.Linear(width, 1)

    def forward(self, x):
        return self.value(self.body(x)).squeeze(1)


def main():
    torch.manual_seed(106)
    x = torch.randn(1280, 6)
    y = (x[:, 0] - x[:, 1]).abs() + x[:, 2] * x[:, 3].sign()
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
    for epoch in range(3):
        total = 0.0
        for inputs, targets in loader:
            loss = nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.4f}")
    save(model)


main()
