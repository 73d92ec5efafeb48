"""Fine-tunes a small transformer for the parity of a sequence."""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, tokens=8, width=32):
        super().__init__()
        self.embed = nn.Embedding(tokens, width)
        layer = nn.TransformerEncoderLayer(width, 2, 64, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 2)

    def forward(self, ids):
        return self.head(self.layers(self.embed(ids)).mean(1))


def main():
    torch.manual_seed(435)
    model = Encoder()
    model = model.to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)  # bug: TA435
    for step in range(60):
        ids = torch.randint(8, (32, 12))
        loss = nn.functional.cross_entropy(model(ids).float(), (ids == 3).sum(1) % 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(step, round(loss.item(), 4))


if __name__ == "__main__":
    main()
