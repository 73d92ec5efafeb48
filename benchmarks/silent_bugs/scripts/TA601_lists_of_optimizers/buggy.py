import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SETTINGS = {
    "backbone": {"lr": 0.02, "momentum": 0.9},
    "head": {"lr": 0.1},
}


class TimeSeriesNet(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv1d(2, 8, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(8, 16, 5, padding=2),
            nn.ReLU(),
        )
        self.head = nn.Linear(16, classes)

    def forward(self, x):
        return self.head(self.backbone(x).mean(-1))


def waves(count):
    labels = torch.randint(3, (count,))
    time = torch.arange(32) * 0.3
    speed = 1.0 + 0.8 * labels[:, None]
    phase = torch.rand(count, 1) * 6.28
    clean = torch.stack([torch.sin(speed * time + phase), torch.cos(speed * time + phase)], 1)
    return TensorDataset(clean + 0.3 * torch.randn_like(clean), labels)


def update(model, optimizers, inputs, labels):
    loss = nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    for optimizer in optimizers.values():
        optimizer.zero_grad()  # bug: TA601
    for optimizer in optimizers.values():
        optimizer.step()
    return loss.item()


def main(epochs=5):
    torch.manual_seed(74)
    loader = DataLoader(waves(960), batch_size=60, shuffle=True)
    model = TimeSeriesNet()
    optimizers = {
        name: torch.optim.SGD(getattr(model, name).parameters(), **options)
        for name, options in SETTINGS.items()
    }
    for epoch in range(epochs):
        losses = [update(model, optimizers, inputs, labels) for inputs, labels in loader]
        print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}")


if __name__ == "__main__":
    main()
