"""Fine-tunes a backbone whose first stage is to stay as it is."""

import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self, frozen_stages=1):
        super().__init__()
        self.frozen_stages = frozen_stages
        self.stages = nn.ModuleList([nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 4)])

    def _freeze_stages(self):
        for stage in self.stages[: self.frozen_stages]:
            stage.eval()
            stage.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        self._freeze_stages()
        return self

    def forward(self, x):
        for stage in self.stages[:-1]:
            x = torch.relu(stage(x))
        return self.stages[-1](x)


def main():
    torch.manual_seed(0)
    model = Backbone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(20):
        x = torch.randn(32, 8)
        loss = nn.functional.cross_entropy(model(x), x[:, :4].argmax(dim=1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # bug: TA619 (runtime)
    print(loss.item())


if __name__ == "__main__":
    main()
