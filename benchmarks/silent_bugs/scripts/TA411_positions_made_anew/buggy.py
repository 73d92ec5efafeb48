"""Small attention model over sets of measurements in order."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class OrderedReader(nn.Module):
    def __init__(self, features, width=16, classes=2):
        super().__init__()
        self.width = width
        self.lift = nn.Linear(features, width)
        self.attention = nn.MultiheadAttention(width, num_heads=2, batch_first=True)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, classes))

    def forward(self, x):
        steps = x.size(1)
        table = nn.Embedding(steps, self.width)  # bug: TA411
        h = self.lift(x) + table(torch.arange(steps, device=x.device))
        mixed, _ = self.attention(h, h, h, need_weights=False)
        return self.head((h + mixed).mean(dim=1))


def rising_or_falling(count, steps=8, features=3):
    labels = torch.randint(2, (count,))
    slope = (2 * labels.float() - 1).view(-1, 1, 1)
    time = torch.linspace(-1, 1, steps).view(1, -1, 1)
    return TensorDataset(slope * time + 0.5 * torch.randn(count, steps, features), labels)


def train(model, loader, epochs):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    for epoch in range(epochs):
        losses = []
        for x, labels in loader:
            loss = criterion(model(x), labels)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: {sum(losses) / len(losses):.3f}")


if __name__ == "__main__":
    torch.manual_seed(13)
    reader = OrderedReader(features=3)
    with torch.no_grad():
        print("output", tuple(reader(torch.randn(2, 8, 3)).shape))
    train(reader, DataLoader(rising_or_falling(1280), batch_size=32, shuffle=True), epochs=3)
