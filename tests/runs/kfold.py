"""k-fold cross validation: a new model, optimizer, scheduler and early stopping per fold."""

import copy

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(0)
X = torch.randn(200, 12)
y = (X[:, :4].sum(1) + 0.1 * torch.randn(200) > 0).long()
dataset = TensorDataset(X, y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(12, 32)
        self.drop = nn.Dropout(0.2)
        self.fc2 = nn.Linear(32, 2)

    def forward(self, x):
        return self.fc2(self.drop(torch.relu(self.fc1(x))))


def reset_weights(m):
    for layer in m.children():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()


indices = np.random.RandomState(0).permutation(200)
folds = np.array_split(indices, 4)
results = []
for fold in range(4):
    val_idx = folds[fold]
    train_idx = np.concatenate([f for i, f in enumerate(folds) if i != fold])
    train_loader = DataLoader(Subset(dataset, train_idx.tolist()), batch_size=16, shuffle=True)
    val_loader = DataLoader(Subset(dataset, val_idx.tolist()), batch_size=32)
    model = Net()
    model.apply(reset_weights)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    criterion = nn.CrossEntropyLoss()
    best, best_state, patience = 1e9, None, 0
    for _epoch in range(5):
        model.train()
        for xb, yb in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
        scheduler.step()
        model.eval()
        total, correct = 0.0, 0
        with torch.no_grad():
            for xb, yb in val_loader:
                out = model(xb)
                total += criterion(out, yb).item() * len(yb)
                correct += (out.argmax(1) == yb).sum().item()
        if total < best:
            best, best_state, patience = total, copy.deepcopy(model.state_dict()), 0
        else:
            patience += 1
            if patience >= 2:
                break
    model.load_state_dict(best_state)
    model.eval()
    with torch.no_grad():
        results.append(np.mean([(model(xb).argmax(1) == yb).float().mean().item() for xb, yb in val_loader]))
print(np.mean(results))
