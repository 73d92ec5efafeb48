import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(512, 16)
targets = (inputs @ torch.randn(16, 1)).sin()
loader = DataLoader(TensorDataset(inputs, targets), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
accumulation = 4
for epoch in range(3):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.mse_loss(model(x), y) / accumulation
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)  # bug: TA622
        if (i + 1) % accumulation == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, loss.item() * accumulation)
