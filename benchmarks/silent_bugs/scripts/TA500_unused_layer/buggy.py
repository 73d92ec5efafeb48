"""Two heads on one trunk."""

import torch
from torch import nn


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 32)
        self.mean_head = nn.Linear(32, 1)
        self.scale_head = nn.Linear(32, 1)  # bug: TA500 (runtime)

    def forward(self, x):
        hidden = torch.relu(self.trunk(x))
        mean = self.mean_head(hidden)
        scale = nn.functional.softplus(self.mean_head(hidden)) + 1e-3
        return mean, scale


def main():
    torch.manual_seed(0)
    model = TwoHeads()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.GaussianNLLLoss()
    for _ in range(40):
        x = torch.randn(32, 8)
        mean, scale = model(x)
        loss = criterion(mean, x.sum(dim=1, keepdim=True) + torch.randn(32, 1), scale)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
