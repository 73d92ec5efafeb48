"""Denoising autoencoder of two networks."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def networks(dim=20, code=6):
    return {
        "encoder": nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, code)),
        "decoder": nn.Sequential(nn.Linear(code, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, dim)),
    }


def manifold(count, basis):
    latent = torch.randn(count, 3)
    return torch.tanh(latent @ basis)


def reconstruct(nets, x):
    return nets["decoder"](nets["encoder"](x))


def validate(nets, loader):
    for net in nets.values():
        net.eval()
    total = 0.0
    with torch.no_grad():
        for (x,) in loader:
            total += nn.functional.mse_loss(reconstruct(nets, x), x).item()
    return total / len(loader)


def train(nets, loader, optimizer, noise=0.3):
    nets["encoder"].train()
    nets["decoder"].train()
    total = 0.0
    for (x,) in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(reconstruct(nets, x + noise * torch.randn_like(x)), x)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def main():
    torch.manual_seed(147)
    basis = torch.randn(3, 20)
    train_loader = DataLoader(TensorDataset(manifold(800, basis)), batch_size=50, shuffle=True)
    valid_loader = DataLoader(TensorDataset(manifold(200, basis)), batch_size=50)
    nets = networks()
    optimizer = torch.optim.Adam([p for net in nets.values() for p in net.parameters()], lr=3e-3)
    for epoch in range(7):
        loss = train(nets, train_loader, optimizer)
        print(f"{epoch}: train {loss:.4f} valid {validate(nets, valid_loader):.4f}")


main()
