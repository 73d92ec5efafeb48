import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(512, 8)
y = x.square().sum(1, keepdim=True).log()
train_loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

running = 0.0
batches = iter(train_loader)
for iteration in range(1, 61):
    try:
        x, y = next(batches)
    except StopIteration:
        batches = iter(train_loader)
        x, y = next(batches)
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    running += loss.item()
    if iteration % 20 == 0:
        print(iteration, running / iteration)
