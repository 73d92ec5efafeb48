"""A wrapper makes the parameters of a layer anew, as sharding libraries do."""

import torch
from torch import nn


def prepare(module):
    """Replaces each parameter by one in a contiguous piece of memory."""
    for layer in module.modules():
        for name, parameter in list(layer.named_parameters(recurse=False)):
            setattr(layer, name, nn.Parameter(parameter.detach().clone().contiguous()))
    return module


def main():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
    net = prepare(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for step in range(20):
        x = torch.randn(32, 6)
        loss = nn.functional.mse_loss(net(x), x[:, :1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
