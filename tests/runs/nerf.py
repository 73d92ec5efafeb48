# a coordinate network with positional encoding, fitted to the bytes of an image
import torch
from torch import nn
from torch.nn import functional as F


class NeRF(nn.Module):
    def __init__(self, D=6, W=64, input_ch=42, skips=(3,)):
        super().__init__()
        self.skips = skips
        self.pts_linears = nn.ModuleList(
            [nn.Linear(input_ch, W)] + [nn.Linear(W + input_ch if i in skips else W, W) for i in range(D - 1)]
        )
        self.output_linear = nn.Linear(W, 3)

    def forward(self, x):
        h = x
        for i, layer in enumerate(self.pts_linears):
            h = F.relu(layer(h))
            if i in self.skips:
                h = torch.cat([x, h], -1)
        return self.output_linear(h)


def embed(x, freqs=10):
    return torch.cat([x] + [f(2.0**i * x) for i in range(freqs) for f in (torch.sin, torch.cos)], -1)


torch.manual_seed(0)
rows, columns = torch.meshgrid(torch.linspace(-1, 1, 32), torch.linspace(-1, 1, 32), indexing="ij")
coordinates = torch.stack([rows, columns], -1).view(-1, 2)
image = 127.5 + 127.5 * torch.sin(torch.stack([3 * rows, 4 * columns, 5 * rows * columns], -1)).view(-1, 3)
model = NeRF()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-4, betas=(0.9, 0.999))
for i in range(100):
    chosen = torch.randint(0, len(coordinates), (256,))
    optimizer.zero_grad()
    loss = torch.mean((model(embed(coordinates[chosen])) - image[chosen]) ** 2)
    loss.backward()
    optimizer.step()
    for group in optimizer.param_groups:
        group["lr"] = 5e-4 * (0.1 ** (i / 250000))
