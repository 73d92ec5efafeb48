"""Random Fourier features in front of an MLP; the model is saved and loaded."""

import io

import torch
from torch import nn


class Fourier(nn.Module):
    def __init__(self, inputs, features):
        super().__init__()
        self.frequencies = torch.randn(inputs, features)  # bug: TA413
        self.head = nn.Linear(2 * features, 1)

    def forward(self, x):
        angle = x @ self.frequencies
        return self.head(torch.cat([angle.sin(), angle.cos()], dim=1))


def main():
    torch.manual_seed(0)
    model = Fourier(2, 32)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(30):
        x = torch.rand(64, 2)
        loss = nn.functional.mse_loss(model(x), x.prod(dim=1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    served = Fourier(2, 32)
    served.load_state_dict(torch.load(file))
    with torch.no_grad():
        print(nn.functional.mse_loss(served(x), model(x)).item())


if __name__ == "__main__":
    main()
