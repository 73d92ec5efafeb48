import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import MultiStepLR
from torch.utils.data import DataLoader, TensorDataset, random_split


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3)
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(8 * 25, 3)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), 2)
        return self.fc(self.dropout(x.flatten(1)))


def shapes(count):
    labels = torch.randint(3, (count,))
    images = torch.randn(count, 1, 12, 12) * 0.6
    images[labels == 0, :, 5:7, :] += 1
    images[labels == 1, :, :, 5:7] += 1
    images[labels == 2] += torch.eye(12)
    return TensorDataset(images, labels)


def train(model, loader, optimizer):
    model.train()
    total = 0.0
    for data, target in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def test(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for data, target in loader:
            correct += (model(data).argmax(1) == target).sum().item()
    return correct / len(loader.dataset)


def main():
    torch.manual_seed(1)
    train_set, test_set = random_split(shapes(960), [800, 160])
    train_loader = DataLoader(train_set, batch_size=40, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=80)
    model = Net()
    optimizer = torch.optim.Adadelta(model.parameters(), lr=0.5)
    scheduler = MultiStepLR(optimizer, milestones=[1, 4], gamma=0.3)
    for epoch in range(1, 7):
        scheduler.step()  # bug: TA607
        loss = train(model, train_loader, optimizer)
        print(
            f"epoch {epoch}: loss {loss:.4f}, accuracy {test(model, test_loader):.3f}, lr {scheduler.get_last_lr()[0]:.3g}"
        )


main()
