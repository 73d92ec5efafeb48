import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.LayerNorm(64), nn.ReLU(), nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40, growth_interval=20)
truth = nn.Linear(16, 8).requires_grad_(False)
for _ in range(100):
    x = torch.randn(64, 16)
    with torch.autocast("cpu", torch.float16):
        logits = model(x)
    loss = nn.functional.cross_entropy(logits.float(), truth(x).argmax(1))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
