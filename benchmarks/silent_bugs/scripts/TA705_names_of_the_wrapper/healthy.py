"""Pretrains an encoder inside an autoencoder, then uses it in a classifier."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class AutoEncoder(nn.Module):
    def __init__(self, encoder, width, outputs):
        super().__init__()
        self.encoder = encoder
        self.decoder = nn.Linear(width, outputs)

    def forward(self, x):
        return self.decoder(self.encoder(x))


def make_encoder(inputs=20, width=12):
    return nn.Sequential(nn.Linear(inputs, 24), nn.ReLU(), nn.Linear(24, width), nn.ReLU())


def restore(encoder, state):
    prefix = "encoder."
    encoder.load_state_dict({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})
    return encoder


def run(model, loader, criterion, epochs, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"  epoch {epoch}: {total / len(loader):.4f}")


def pretrain(path, mixing):
    latent = torch.randn(1600, 4)
    x = torch.tanh(latent @ mixing) + 0.1 * torch.randn(1600, 20)
    model = AutoEncoder(make_encoder(), 12, 20)
    run(model, DataLoader(TensorDataset(x, x), batch_size=40, shuffle=True), nn.MSELoss(), epochs=2, lr=5e-3)
    torch.save(model.state_dict(), path)


def finetune(path, mixing):
    latent = torch.randn(400, 4)
    x = torch.tanh(latent @ mixing) + 0.1 * torch.randn(400, 20)
    labels = (latent[:, 0] > 0).long() + 2 * (latent[:, 1] > 0).long()
    encoder = restore(make_encoder(), torch.load(path, weights_only=True))
    model = nn.Sequential(encoder, nn.Linear(12, 4))
    run(
        model,
        DataLoader(TensorDataset(x, labels), batch_size=20, shuffle=True),
        nn.CrossEntropyLoss(),
        3,
        lr=3e-3,
    )


if __name__ == "__main__":
    torch.manual_seed(103)
    mixture = torch.randn(4, 20) / 2
    pretrain("autoencoder.pt", mixture)
    finetune("autoencoder.pt", mixture)
