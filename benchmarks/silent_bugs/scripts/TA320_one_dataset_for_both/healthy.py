import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
x = torch.randn(320, 12)
y = (x[:, :3].sum(1, keepdim=True) + 0.3 * torch.randn(320, 1)).sign().clamp(min=0)
train_part, val_part = random_split(TensorDataset(x, y), [240, 80])
train_loader = DataLoader(train_part, batch_size=32, shuffle=True)
val_loader = DataLoader(val_part, batch_size=64)

model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(6):
    model.train()
    for features, label in train_loader:
        optimizer.zero_grad()
        criterion(model(features), label).backward()
        optimizer.step()
    model.eval()
    hits = 0
    for features, label in val_loader:
        with torch.no_grad():
            hits += ((model(features) > 0) == (label > 0)).sum().item()
    print(f"epoch {epoch}: {hits / len(val_loader.dataset):.3f}")
