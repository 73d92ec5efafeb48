import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

PHASES = ("training", "validation")


def make_loaders():
    loaders = {}
    weights = torch.randn(1, 1, 9)
    for phase, count in zip(PHASES, (768, 192)):
        signal = torch.randn(count, 1, 40)
        label = (nn.functional.conv1d(signal, weights).amax((1, 2)) > 6.5).long()
        loaders[phase] = DataLoader(TensorDataset(signal, label), batch_size=32, shuffle=phase == "training")
    return loaders


class SignalNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 12, 9)
        self.dropout = nn.Dropout(0.1)
        self.fc = nn.Linear(12, 2)

    def forward(self, signal):
        return self.fc(self.dropout(torch.relu(self.conv(signal)).amax(-1)))


def run_phase(phase, model, loader, criterion, optimizer):
    training = phase == "training"
    model.train(training)
    total, correct = 0.0, 0
    for signal, label in loader:
        optimizer.zero_grad()
        with torch.set_grad_enabled(phase == "train"):
            logits = model(signal)
            loss = criterion(logits, label)
        if training:
            loss.backward()  # bug: TA505
            optimizer.step()
        total += loss.item() * len(label)
        correct += (logits.argmax(1) == label).sum().item()
    size = len(loader.dataset)
    return total / size, correct / size


def main(epochs=4):
    torch.manual_seed(9)
    loaders = make_loaders()
    model = SignalNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        for phase in PHASES:
            loss, accuracy = run_phase(phase, model, loaders[phase], criterion, optimizer)
            print(f"epoch {epoch} {phase}: loss {loss:.3f} accuracy {accuracy:.3f}")


main()
