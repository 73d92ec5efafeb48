"""Residual MLP with its own RMSNorm; decay is decided by the kind of the module."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class RMSNorm(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = RMSNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(F.silu(self.up(self.norm(x))))


NO_DECAY = (nn.LayerNorm, nn.GroupNorm, nn.BatchNorm1d, nn.Embedding)


def groups_for(model, weight_decay):
    decay, no_decay = [], []
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            skip = name == "bias" or isinstance(module, NO_DECAY)
            (no_decay if skip else decay).append(parameter)
    return [{"params": decay, "weight_decay": weight_decay}, {"params": no_decay, "weight_decay": 0.0}]


def run(epochs=2, width=24):
    torch.manual_seed(0)
    x = torch.randn(1024, 8)
    y = (x[:, 0] * x[:, 1] > 0).long()
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model = nn.Sequential(
        nn.Linear(8, width), Residual(width), Residual(width), RMSNorm(width), nn.Linear(width, 2)
    )
    optimizer = torch.optim.AdamW(groups_for(model, 0.1), lr=2e-3, betas=(0.9, 0.95))  # bug: TA402
    for epoch in range(epochs):
        losses = []
        for inputs, labels in loader:
            loss = F.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.3f}")


run()
