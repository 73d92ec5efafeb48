"""A normalisation layer of one's own, which keeps running statistics for evaluation."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Centre(nn.Module):
    """Takes the mean of the batch off; in evaluation the mean of the batches so far."""

    def __init__(self, width, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.gain = nn.Parameter(torch.ones(width))
        self.register_buffer("running", torch.zeros(width))

    def forward(self, x):
        if self.training:
            mean = x.mean(0)
            self.running = (1 - self.momentum) * self.running + self.momentum * mean.detach()
        else:
            mean = self.running
        return (x - mean) * self.gain


class Regressor(nn.Module):
    def __init__(self, inputs=10, width=32):
        super().__init__()
        self.first = nn.Linear(inputs, width, bias=False)
        self.centre = Centre(width)
        self.second = nn.Linear(width, 1)

    def forward(self, x):
        return self.second(nn.functional.gelu(self.centre(self.first(x))))


def table(rows):
    x = torch.randn(rows, 10) + 0.5
    return TensorDataset(x, (x[:, :2].prod(1) + x[:, 2]).unsqueeze(1))


def main():
    torch.manual_seed(60)
    train = DataLoader(table(1600), batch_size=32, shuffle=True)
    valid = DataLoader(table(320), batch_size=160)
    model = Regressor()
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(3):
        model.train()
        for x, y in train:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            error = sum(criterion(model(x), y).item() for x, y in valid) / len(valid)
        print(f"epoch {epoch} validation {error:.4f}")


if __name__ == "__main__":
    main()
