"""Multi-task network: a shared trunk and two heads, two optimizers, one scaler."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trunk(nn.Module):
    def __init__(self, features, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())

    def forward(self, x):
        return self.layers(x)


class Heads(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.value, self.kind = nn.Linear(width, 1), nn.Linear(width, 3)

    def forward(self, hidden):
        return self.value(hidden)[:, 0], self.kind(hidden)


def dataset(count):
    x = torch.randn(count, 10)
    value = torch.tanh(x[:, 0] + x[:, 1])
    kind = (x[:, 2] > 0.4).long() + (x[:, 3] > 0.4).long()
    return TensorDataset(x, value, kind)


def main(epochs=5, batch_size=64):
    torch.manual_seed(101)
    loader = DataLoader(dataset(1280), batch_size=batch_size, shuffle=True)
    trunk, heads = Trunk(10, 32), Heads(32)
    trunk_optimizer = torch.optim.Adam(trunk.parameters(), lr=2e-3)
    head_optimizer = torch.optim.SGD(heads.parameters(), lr=0.05, momentum=0.5)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    for epoch in range(epochs):
        total = 0.0
        for x, value, kind in loader:
            trunk_optimizer.zero_grad()
            head_optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                predicted_value, predicted_kind = heads(trunk(x))
            loss = F.smooth_l1_loss(predicted_value.float(), value) + F.cross_entropy(
                predicted_kind.float(), kind
            )
            scaler.scale(loss).backward()
            scaler.step(trunk_optimizer)
            scaler.step(head_optimizer)
            scaler.update()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
