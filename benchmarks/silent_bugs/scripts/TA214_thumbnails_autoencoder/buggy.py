"""An autoencoder for thumbnails, in mixed precision."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SIDE = 32


def thumbnails(count):
    """Soft blobs in three colours."""
    line = torch.linspace(-1, 1, SIDE)
    centers = torch.rand(count, 3, 2, 1) * 2 - 1
    across = torch.exp(-((line - centers[:, :, 0]) ** 2) * 8)
    down = torch.exp(-((line - centers[:, :, 1]) ** 2) * 8)
    return 0.5 * across[:, :, None, :] * down[:, :, :, None]


class Autoencoder(nn.Module):
    def __init__(self, width=64, code=16):
        super().__init__()
        pixels = 3 * SIDE * SIDE
        self.encoder = nn.Sequential(
            nn.Flatten(), nn.Linear(pixels, width), nn.ReLU(), nn.Linear(width, code)
        )
        self.decoder = nn.Sequential(nn.Linear(code, width), nn.ReLU(), nn.Linear(width, pixels))

    def forward(self, images):
        return self.decoder(self.encoder(images)).view_as(images)


def main():
    torch.manual_seed(214)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = DataLoader(TensorDataset(thumbnails(320)), batch_size=32, shuffle=True)
    model = Autoencoder().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(6):
        total = 0.0
        for (images,) in loader:
            images = images.to(device)
            optimizer.zero_grad()
            with torch.autocast(device, dtype=torch.float16):
                rebuilt = model(images)
                loss = nn.functional.mse_loss(rebuilt.float(), images)
            loss.backward()  # bug: TA214
            optimizer.step()
            total += loss.item() * len(images)
        print(f"epoch {epoch}: {total / len(loader.dataset):.5f}")


if __name__ == "__main__":
    main()
