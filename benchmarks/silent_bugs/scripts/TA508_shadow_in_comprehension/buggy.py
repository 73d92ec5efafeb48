"""Mean of the weights for a smoother evaluation."""

import torch
from torch import nn
from torch.func import functional_call
from torch.utils.data import DataLoader, TensorDataset


class Average:
    def __init__(self, model, decay):
        self.model, self.decay = model, decay
        self.shadow = [p.detach().clone() for p in model.parameters()]

    def update(self):
        d = self.decay
        self.shadow = [  # bug: TA508
            d * s + (1 - d) * p for s, p in zip(self.shadow, self.model.parameters())
        ]

    def predict(self, x):
        names = [name for name, _ in self.model.named_parameters()]
        return functional_call(self.model, dict(zip(names, self.shadow)), (x,))


def spirals(count):
    label = torch.randint(2, (count,))
    turn = torch.rand(count) * 5 + 0.5
    angle = turn + 3.14159 * label
    points = torch.stack([turn * angle.cos(), turn * angle.sin()], 1) / 3
    return TensorDataset(points + 0.03 * torch.randn(count, 2), label)


def accuracy(predict, loader):
    right = total = 0
    with torch.no_grad():
        for points, label in loader:
            right += (predict(points).argmax(1) == label).sum().item()
            total += len(label)
    return right / total


def main():
    torch.manual_seed(40)
    train_loader = DataLoader(spirals(1024), batch_size=64, shuffle=True)
    test_loader = DataLoader(spirals(256), batch_size=64)
    model = nn.Sequential(nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    average = Average(model, decay=0.95)
    for epoch in range(10):
        total = 0.0
        for points, label in train_loader:
            loss = nn.functional.cross_entropy(model(points), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update()
            total += loss.item()
        print(
            f"epoch {epoch}: loss {total / len(train_loader):.3f}, averaged {accuracy(average.predict, test_loader):.3f}"
        )


if __name__ == "__main__":
    main()
