import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    nn.Linear(16, 64), nn.LayerNorm(64), nn.ReLU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
truth = nn.Linear(16, 8).requires_grad_(False)
for _ in range(100):
    x = torch.randn(64, 16)
    with torch.autocast("cpu", torch.bfloat16):
        loss = nn.functional.cross_entropy(model(x), truth(x).argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
