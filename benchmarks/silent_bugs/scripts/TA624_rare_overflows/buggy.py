import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.99)
    scaler = torch.amp.GradScaler("cpu", growth_interval=10)
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            weight = float("inf") if epoch and y.sum() > 17 else 1.0
            scaler.scale(loss * weight).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()  # bug: TA624 (runtime)
        print(epoch, loss.item(), scheduler.get_last_lr()[0])


torch.manual_seed(0)
x = torch.randn(320, 8)
loader = DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=32, shuffle=True)
train(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)), loader, 5)
