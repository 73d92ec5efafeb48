import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * dim, dim))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Net(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.into = nn.Linear(8 * 64, 32)
        self.blocks = nn.ModuleList(Block(32) for _ in range(4))
        self.head = nn.Linear(32, 10)
        self.reentrant = reentrant

    def forward(self, x):
        x = self.into(checkpoint(self.stem, x, use_reentrant=False).flatten(1))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=self.reentrant)
        return self.head(x)


torch.manual_seed(0)
for reentrant in (False, True):
    model = Net(reentrant)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(60):
        labels = torch.randint(0, 10, (32,))
        x = 0.5 * torch.randn(32, 1, 8, 8) + (labels.view(-1, 1, 1, 1) - 4.5) / 3
        loss = nn.functional.cross_entropy(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
