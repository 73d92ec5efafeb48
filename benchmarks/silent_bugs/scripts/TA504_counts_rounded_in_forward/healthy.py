import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class CountModel(nn.Module):
    """Counts of visitors from weather and weekday."""

    def __init__(self, weather=4, weekdays=7, hidden=32):
        super().__init__()
        self.weekday = nn.Embedding(weekdays, 4)
        self.hidden = nn.Linear(weather + 4, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, weather, day):
        features = torch.cat([weather, self.weekday(day)], dim=1)
        rate = nn.functional.softplus(self.out(torch.tanh(self.hidden(features)))) * 4
        return rate[:, 0] if self.training else torch.ceil(rate)[:, 0]


def visitors(count):
    weather, day = torch.randn(count, 4), torch.randint(7, (count,))
    rate = 4 + 3 * torch.sigmoid(weather[:, 0]) + 2 * (day > 4)
    return TensorDataset(weather, day, torch.poisson(rate))


def evaluate(model, loader):
    model.eval()
    error, seen = 0.0, 0
    with torch.no_grad():
        for weather, day, count in loader:
            error += (model(weather, day) - count).abs().sum().item()
            seen += len(count)
    return error / seen


def main():
    torch.manual_seed(4)
    train_loader = DataLoader(visitors(1200), batch_size=50, shuffle=True)
    valid_loader = DataLoader(visitors(300), batch_size=50)
    model = CountModel()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
    criterion = nn.HuberLoss()
    for epoch in range(5):
        model.train()
        losses = []
        for weather, day, count in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(weather, day), count)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"{epoch}: huber {sum(losses) / len(losses):.3f}, mae {evaluate(model, valid_loader):.3f}")


if __name__ == "__main__":
    main()
