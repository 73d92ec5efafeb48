"""Embeds points so that all distances between them are kept (metric scaling)."""

import torch
from torch import nn


class Flatten3D(nn.Module):
    """Maps points of a curved sheet into the plane."""

    def __init__(self, hidden=32):
        super().__init__()
        self.inward = nn.Linear(3, hidden)
        self.outward = nn.Linear(hidden, 2)

    def forward(self, points):
        return self.outward(torch.tanh(self.inward(points)))


def pairwise(points):
    difference = points.unsqueeze(0) - points.unsqueeze(1)
    return torch.linalg.vector_norm(difference, dim=-1)


def stress(embedded, geodesic):
    return (pairwise(embedded) - geodesic).square().mean()


def sheet(n, generator):
    u, v = torch.rand(2, n, generator=generator)
    points = torch.stack([torch.cos(2 * u), v, torch.sin(2 * u)], dim=1)
    flat = torch.stack([2 * u, v], dim=1)
    return points, torch.cdist(flat, flat)


def main():
    torch.manual_seed(26)
    generator = torch.Generator().manual_seed(26)
    model = Flatten3D()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(120):
        points, geodesic = sheet(40, generator)
        optimizer.zero_grad()
        loss = stress(model(points), geodesic)
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
