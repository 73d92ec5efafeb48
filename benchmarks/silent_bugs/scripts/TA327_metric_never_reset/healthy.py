import torch
import torchmetrics
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    x = torch.randn(400, 8)
    y = x[:, :4].argmax(1)
    train_loader = DataLoader(TensorDataset(x[:320], y[:320]), batch_size=32, shuffle=True)
    val_loader = DataLoader(TensorDataset(x[320:], y[320:]), batch_size=40)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=4)
    for epoch in range(5):
        for features, labels in train_loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(features), labels).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for features, labels in val_loader:
                accuracy.update(model(features), labels)
        model.train()
        print(epoch, accuracy.compute().item())
        accuracy.reset()


if __name__ == "__main__":
    main()
