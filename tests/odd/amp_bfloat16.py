# Autocast to bfloat16 with a cache, and a function that leaves it.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3))
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(6):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(torch.randn(4, 8))
        print(out.dtype, torch.is_autocast_enabled("cpu"))
        with torch.autocast("cpu", enabled=False):
            loss = nn.functional.cross_entropy(out.float(), torch.tensor([0, 1, 2, 0]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
told(model)
