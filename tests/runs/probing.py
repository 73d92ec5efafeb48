"""An encoder with normalised weights is pretrained and then probed; the probe's optimizer has the probe alone."""

import copy

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, size=16):
        super().__init__()
        self.conv = nn.utils.parametrizations.spectral_norm(nn.Conv1d(4, 4, 3, padding=1))
        self.fc = nn.utils.parametrizations.weight_norm(nn.Linear(size, size))
        self.out = nn.LazyLinear(size)
        self.scale = nn.Parameter(torch.ones(size))
        self.register_buffer("shift", torch.linspace(-0.1, 0.1, size))
        self.last = None

    def forward(self, x):
        self.last = self.out(self.fc(self.conv(x)).tanh()) * self.scale + self.shift
        return self.last


def batches(count=12):
    for _ in range(count):
        yield torch.randn(32, 4, 16)


torch.manual_seed(0)
encoder, decoder = Encoder(), nn.Linear(16, 16)
encoder(torch.randn(2, 4, 16))
average = copy.deepcopy(decoder)
optimizer = torch.optim.AdamW([*encoder.parameters(), *decoder.parameters()], lr=3e-3)
for x in batches():
    loss = nn.functional.mse_loss(decoder(encoder(x)), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.load_state_dict(decoder.state_dict())

probe = nn.Linear(16, 1)
optimizer = torch.optim.AdamW(probe.parameters(), lr=3e-3)
for x in batches():
    loss = nn.functional.mse_loss(probe(encoder(x)).squeeze(-1), x.mean(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
