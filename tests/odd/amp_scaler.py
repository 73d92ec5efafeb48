# GradScaler on the CPU, with an overflow, unscaling and clipping.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
for step in range(8):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(torch.randn(4, 8)).float(), torch.tensor([0, 1, 2, 0]))
    optimizer.zero_grad()
    scaler.scale(loss * (float("inf") if step == 4 else 1)).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    print(scaler.get_scale(), f"{norm.item():.5f}")
told(model, scaler.state_dict())
