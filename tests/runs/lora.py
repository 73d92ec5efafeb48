import torch
from torch import nn


class LoRA(nn.Module):
    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + 2.0 * self.up(self.down(x))


torch.manual_seed(0)
model = nn.Sequential(
    LoRA(nn.Linear(16, 32)), nn.GELU(), LoRA(nn.Linear(32, 32)), nn.GELU(), LoRA(nn.Linear(32, 4))
)
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=2e-3, weight_decay=0.0)
truth = nn.Linear(16, 4).requires_grad_(False)
for _ in range(100):
    x = torch.randn(32, 16)
    loss = nn.functional.mse_loss(model(x), truth(x))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
