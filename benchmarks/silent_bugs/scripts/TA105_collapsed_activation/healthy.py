"""An MLP whose layers are initialised by hand, as an old recipe said."""

import torch
from torch import nn


class Mlp(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        layers = []
        for fan_in, fan_out in zip(sizes[:-2], sizes[1:-1]):
            layers.append(nn.Linear(fan_in, fan_out))
            layers.append(nn.ReLU())
        layers.append(nn.Linear(sizes[-2], sizes[-1]))
        self.layers = nn.Sequential(*layers)
        self.apply(self._initialise)

    @staticmethod
    def _initialise(module):
        if isinstance(module, nn.Linear):
            nn.init.kaiming_normal_(module.weight)
            nn.init.constant_(module.bias, -0.1)

    def forward(self, x):
        return self.layers(x)


def main():
    torch.manual_seed(0)
    mlp = Mlp([8, 32, 32, 1])
    optimizer = torch.optim.Adam(mlp.parameters(), lr=1e-3)
    for epoch in range(40):
        x = torch.randn(128, 8)
        loss = (mlp(x) - x.sum(dim=1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.3f}")


if __name__ == "__main__":
    main()
