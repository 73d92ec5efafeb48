"""An autoencoder with a discrete code: which prototype, and how it looks."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Encoder(nn.Module):
    def __init__(self, dim, codes):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, codes))

    def forward(self, x):
        return self.net(x)


class Decoder(nn.Module):
    def __init__(self, dim, codes, width=24):
        super().__init__()
        self.codebook = nn.Linear(codes, width, bias=False)
        self.net = nn.Sequential(nn.ReLU(), nn.Linear(width, dim))

    def forward(self, code):
        return self.net(self.codebook(code))


def quantize(logits):
    probabilities = logits.softmax(dim=-1)
    hard = F.one_hot(logits.argmax(dim=-1), logits.shape[-1]).float()
    return hard + probabilities - probabilities.detach()


def clusters(count, dim, groups):
    centres = 1.5 * torch.randn(groups, dim)
    return centres[torch.randint(groups, (count,))] + 0.3 * torch.randn(count, dim)


def main(epochs=6, codes=8, dim=12):
    torch.manual_seed(17)
    loader = DataLoader(TensorDataset(clusters(1024, dim, 6)), batch_size=64, shuffle=True)
    encoder, decoder = Encoder(dim, codes), Decoder(dim, codes)
    parameters = [*encoder.parameters(), *decoder.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=5e-3)
    for epoch in range(epochs):
        total, used = 0.0, set()
        for (x,) in loader:
            logits = encoder(x)
            code = quantize(logits)
            used.update(code.detach().argmax(-1).tolist())
            reconstruction = F.mse_loss(decoder(code), x)
            smoothness = 1e-3 * decoder.codebook.weight.square().mean()
            loss = reconstruction + smoothness
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.4f}, {len(used)} codes in use")


if __name__ == "__main__":
    main()
