"""Tempting: straight-through estimators, a codebook that is a buffer updated in place, `detach` on both sides."""

import torch
from torch import nn
from torch.nn import functional as F


class Quantizer(nn.Module):
    def __init__(self, count, width, decay=0.99):
        super().__init__()
        embed = torch.randn(width, count)
        self.register_buffer("embed", embed)
        self.register_buffer("cluster_size", torch.zeros(count))
        self.register_buffer("embed_avg", embed.clone())
        self.count, self.decay = count, decay

    def forward(self, inputs):
        flat = inputs.reshape(-1, inputs.size(-1))
        distance = (
            flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.embed + self.embed.pow(2).sum(0, keepdim=True)
        )
        index = distance.argmin(1)
        onehot = F.one_hot(index, self.count).type(flat.dtype)
        quantized = F.embedding(index, self.embed.t()).view_as(inputs)
        if self.training:
            with torch.no_grad():
                self.cluster_size.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
                self.embed_avg.mul_(self.decay).add_(flat.t() @ onehot, alpha=1 - self.decay)
                self.embed.copy_(self.embed_avg / (self.cluster_size + 1e-5))
        diff = (quantized.detach() - inputs).pow(2).mean()
        return inputs + (quantized - inputs).detach(), diff


encoder, decoder, quantizer = nn.Linear(8, 4), nn.Linear(4, 8), Quantizer(16, 4)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
for step in range(100):
    x = torch.randn(32, 8)
    quantized, diff = quantizer(encoder(x))
    loss = F.mse_loss(decoder(quantized), x) + 0.25 * diff
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
