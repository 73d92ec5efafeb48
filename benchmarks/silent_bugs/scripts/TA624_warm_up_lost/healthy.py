import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.01, total_iters=10)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)

for step in range(60):
    x = torch.randn(32, 6)
    loss = 20 * nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scale = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    if scaler.get_scale() >= scale:
        schedule.step()
    if step % 20 == 0:
        print(step, loss.item())
