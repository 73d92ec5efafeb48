"""Predicts the next patch of a long signal with a transformer encoder."""

import torch
from torch import nn


class PatchModel(nn.Module):
    def __init__(self, patch=16, width=128, layers=2):
        super().__init__()
        self.inward = nn.Linear(patch, width)
        block = nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        self.outward = nn.Linear(width, patch)

    def forward(self, patches, mask):
        hidden = self.blocks(self.inward(patches), mask=mask, is_causal=True)
        return self.outward(hidden)


def signals(n, patches, patch, device):
    t = torch.arange(patches * patch, device=device) / 40
    rate = 0.5 + torch.rand(n, 1, device=device)
    wave = torch.sin(rate * t + 6.28 * torch.rand(n, 1, device=device))
    return wave.view(n, patches, patch)


def train(device, steps=40):
    torch.manual_seed(30)
    model = PatchModel()  # bug: TA207 (runtime)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    mask = nn.Transformer.generate_square_subsequent_mask(55, device=device)
    for step in range(steps):
        wave = signals(16, 56, 16, device)
        prediction = model(wave[:, :-1], mask)
        loss = nn.functional.mse_loss(prediction, wave[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    train(device=torch.device("cpu"))
