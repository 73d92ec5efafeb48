import torch
from torch import nn
from torch.optim.lr_scheduler import ExponentialLR
from torch.utils.data import DataLoader, TensorDataset

config = {
    "epochs": 10,
    "batch_size": 40,
    "lr": 0.05,
    "gamma": 0.995,
    "hidden": 24,
}


def moons(count):
    label = torch.randint(2, (count,))
    angle = torch.rand(count) * 3.1416
    x = torch.where(label == 0, angle.cos(), 1 - angle.cos())
    y = torch.where(label == 0, angle.sin(), 0.5 - angle.sin())
    return TensorDataset(torch.stack([x - 0.5, y - 0.25], 1) + 0.1 * torch.randn(count, 2), label.float())


def optimize(loss, optimizer, scheduler):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()


def train_model(model, loader, config):
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"], momentum=0.9)
    scheduler = ExponentialLR(optimizer, gamma=config["gamma"])
    for epoch in range(config["epochs"]):
        running = 0.0
        for points, label in loader:
            loss = criterion(model(points).squeeze(-1), label)
            optimize(loss, optimizer, scheduler)
            running += loss.item()
        print(f"epoch {epoch}: loss {running / len(loader):.4f}, lr {optimizer.param_groups[0]['lr']:.2e}")


def main():
    torch.manual_seed(115)
    loader = DataLoader(moons(800), batch_size=config["batch_size"], shuffle=True)
    model = nn.Sequential(nn.Linear(2, config["hidden"]), nn.ReLU(), nn.Linear(config["hidden"], 1))
    train_model(model, loader, config)


if __name__ == "__main__":
    main()
