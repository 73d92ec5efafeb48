import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

QUANTILES = np.array([0.1, 0.5, 0.9], dtype=np.float32)


class QuantileRegressor(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, 24), nn.SiLU())
        self.head = nn.Linear(24, len(QUANTILES))

    def forward(self, x):
        return self.head(self.body(x))


def pinball(predicted, target):
    error = target.numpy() - predicted.detach().numpy()  # bug: TA502 (static)
    values = np.maximum(QUANTILES * error, (QUANTILES - 1) * error)
    return torch.from_numpy(values).mean()


def coverage(predicted, target):
    low, high = predicted[:, 0].detach().numpy(), predicted[:, 2].detach().numpy()
    inside = (target[:, 0].numpy() >= low) & (target[:, 0].numpy() <= high)
    return float(inside.mean())


def main(epochs=5, batch_size=40, lr=1e-2):
    torch.manual_seed(3)
    x = torch.randn(800, 3)
    y = x[:, :1] + (0.3 + 0.5 * x[:, 1:2].abs()) * torch.randn(800, 1)
    loader = DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True)
    model = QuantileRegressor(3)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        losses, covered = [], []
        for inputs, targets in loader:
            predicted = model(inputs)
            loss = pinball(predicted, targets)
            optimizer.zero_grad()
            loss.backward()  # bug: TA502 (runtime)
            optimizer.step()
            losses.append(loss.item())
            covered.append(coverage(predicted, targets))
        print(f"epoch {epoch}: pinball {np.mean(losses):.4f}, coverage {np.mean(covered):.2f}")


main()
