import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class EarlyStopping:
    def __init__(self, loader, criterion, patience=4):
        self.loader, self.criterion, self.patience = loader, criterion, patience
        self.best, self.bad_epochs = float("inf"), 0

    def check(self, network):
        network.eval()  # bug: TA611
        total = 0.0
        with torch.inference_mode():
            for x, y in self.loader:
                total += self.criterion(network(x), y).item()
        score = total / len(self.loader)
        if score < self.best:
            self.best, self.bad_epochs = score, 0
        else:
            self.bad_epochs += 1
        return score, self.bad_epochs >= self.patience


class ConvClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 8, 5, bias=False)
        self.norm1 = nn.BatchNorm1d(8)
        self.conv2 = nn.Conv1d(8, 8, 5, bias=False)
        self.norm2 = nn.BatchNorm1d(8)
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        x = torch.relu(self.norm1(self.conv1(x)))
        x = torch.relu(self.norm2(self.conv2(x)))
        return self.fc(x.mean(-1))


def pulses(count):
    label = torch.randint(2, (count,))
    signal = torch.randn(count, 1, 32)
    start = torch.randint(24, (count,)).tolist()
    for i, (row, s) in enumerate(zip(signal, start)):
        row[:, s : s + 6] += 2.5 * label[i]
    return TensorDataset(signal, label)


def train_epoch(network, loader, criterion, optimizer):
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(network(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def main():
    torch.manual_seed(143)
    train_set, valid_set = random_split(pulses(960), [800, 160])
    train_loader = DataLoader(train_set, batch_size=40, shuffle=True)
    criterion = nn.CrossEntropyLoss()
    stopper = EarlyStopping(DataLoader(valid_set, batch_size=80), criterion)
    network = ConvClassifier()
    network.train()
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    for epoch in range(8):
        loss = train_epoch(network, train_loader, criterion, optimizer)
        score, stop = stopper.check(network)
        print(f"epoch {epoch}: train {loss:.4f}, valid {score:.4f}")
        if stop:
            break


if __name__ == "__main__":
    main()
