"""A tiny vision transformer on stripes."""

import torch
from torch import nn
from torch.nn import functional as F


class TinyViT(nn.Module):
    def __init__(self, size=12, patch=4, width=16, classes=2):
        super().__init__()
        count = (size // patch) ** 2
        self.patchify = nn.Conv2d(1, width, patch, stride=patch)
        self.token = nn.Parameter(torch.empty(1, 1, width))
        self.positions = nn.Parameter(torch.empty(1, count + 1, width))
        layer = nn.TransformerEncoderLayer(
            width, 2, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)
        self.apply(init_weights)

    def forward(self, images):
        x = self.patchify(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], dim=1) + self.positions
        return self.head(self.blocks(x)[:, 0])


def init_weights(module):
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.1)
        nn.init.zeros_(module.bias)
    elif isinstance(module, nn.LayerNorm):
        nn.init.ones_(module.weight)
    elif isinstance(module, TinyViT):
        nn.init.trunc_normal_(module.token, std=0.02)
        nn.init.trunc_normal_(module.positions, std=0.02)


def stripes(count, size=12):
    labels = torch.randint(2, (count,))
    wave = torch.sin(torch.arange(size) * 1.5 + 6.28 * torch.rand(count, 1))
    images = wave.unsqueeze(1).expand(-1, size, -1).clone()
    images[labels == 1] = images[labels == 1].transpose(1, 2)
    return images.unsqueeze(1) + 0.2 * torch.randn(count, 1, size, size), labels


torch.manual_seed(31)
model = TinyViT()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(100):
    images, labels = stripes(32)
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 25 == 0:
        print(f"step {step}: {loss.item():.3f}")
