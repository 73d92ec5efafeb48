"""Graph convolution on a ring of nodes."""

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset


class GraphConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.own = nn.Linear(inputs, outputs)
        self.neighbours = nn.Linear(inputs, outputs, bias=False)

    def forward(self, nodes):
        return self.own(nodes) + self.neighbours((nodes.roll(1, 1) + nodes.roll(-1, 1)) / 2)


class GraphNet(nn.Module):
    def __init__(self, features=3, width=16):
        super().__init__()
        self.first, self.second = GraphConv(features, width), GraphConv(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, nodes):
        hidden = torch.relu(self.first(nodes))
        hidden = torch.relu(self.second(hidden))
        return self.out(hidden.mean(1))


def rings(count, nodes=12):
    x = torch.randn(count, nodes, 3)
    y = (x[..., :1] * x.roll(1, 1)[..., :1]).mean(1) * 2
    return TensorDataset(x, y)


def configure_optimizers(model, lr, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    scheduler = CosineAnnealingLR(optimizer, T_max=epochs)
    return optimizer, scheduler


def fit(model, loader, epochs, lr):
    optimizer, scheduler = configure_optimizers(model, lr, epochs)
    for epoch in range(epochs):
        total = 0.0
        for nodes, target in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(nodes), target)
            loss.backward()
            optimizer.step()
            total += loss.item()
        scheduler.step()
        print(f"epoch {epoch}: {total / len(loader):.4f}, lr {optimizer.param_groups[0]['lr']:.4f}")


if __name__ == "__main__":
    torch.manual_seed(212)
    fit(GraphNet(), DataLoader(rings(960), batch_size=48, shuffle=True), epochs=8, lr=0.05)
