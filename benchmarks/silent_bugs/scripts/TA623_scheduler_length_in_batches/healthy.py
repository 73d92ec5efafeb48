import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, ACCUMULATE = 4, 4


def train(model, loader):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    total = EPOCHS * -(-len(loader) // ACCUMULATE)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=total)
    for epoch in range(EPOCHS):
        running = 0.0
        for i, (x, y) in enumerate(loader, start=1):
            loss = nn.functional.mse_loss(model(x), y)
            (loss / ACCUMULATE).backward()
            running += loss.item()
            if i % ACCUMULATE == 0 or i == len(loader):
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        print(epoch, running / len(loader), scheduler.get_last_lr()[0])


torch.manual_seed(0)
x = torch.randn(256, 6)
loader = DataLoader(TensorDataset(x, x.cumsum(1)), batch_size=16, shuffle=True)
train(nn.Sequential(nn.Linear(6, 32), nn.SiLU(), nn.Linear(32, 6)), loader)
