import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        wide = x.float()
        scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return scaled * self.weight


class FeedForward(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.norm = RMSNorm(dim)  # bug: TA512 (runtime)
        self.gate = nn.Linear(dim, hidden)
        self.up = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim)

    def forward(self, x):
        h = self.norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Regressor(nn.Module):
    def __init__(self, features, dim=32, depth=2):
        super().__init__()
        self.enter = nn.Linear(features, dim)
        self.blocks = nn.Sequential(*(FeedForward(dim, 2 * dim) for _ in range(depth)))
        self.leave = nn.Linear(dim, 1)

    def forward(self, x):
        return self.leave(self.blocks(self.enter(x)))


def sample(count):
    x = torch.randn(count, 6)
    return x, (x[:, :1] * 1.5 + x[:, 1:2] * x[:, 2:3])


def main(steps=100):
    torch.manual_seed(31)
    model = Regressor(6).to(torch.bfloat16)  # bug: TA512 (runtime)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for step in range(steps):
        x, y = sample(64)
        loss = F.mse_loss(model(x.bfloat16()).float(), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % 25 == 0:
            print(f"{step + 1}: {sum(losses[-25:]) / 25:.4f}")


if __name__ == "__main__":
    main()
