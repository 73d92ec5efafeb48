import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(500, 10)
y = x[:, :4].argmax(1)
train_set, test_set = TensorDataset(x[:400], y[:400]), TensorDataset(x[400:], y[400:])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True, drop_last=True)
test_loader = DataLoader(test_set, batch_size=32)
model = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(4):
    model.train()
    for images, labels in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    model.eval()
    hits = 0
    with torch.no_grad():
        for images, labels in test_loader:
            hits += (model(images).argmax(1) == labels).sum().item()
    print(epoch, hits / len(test_set))
