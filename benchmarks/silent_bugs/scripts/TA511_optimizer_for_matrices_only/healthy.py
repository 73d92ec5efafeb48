"""A classifier under an optimizer of our own."""

import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader, TensorDataset


class Orthogonal(Optimizer):
    """Momentum whose matrices are made nearly orthogonal before the step."""

    def __init__(self, params, lr=0.02, momentum=0.9, iterations=3):
        super().__init__(params, {"lr": lr, "momentum": momentum, "iterations": iterations})

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if p.ndim != 2:
                    p.add_(p.grad, alpha=-group["lr"])
                    continue
                state = self.state[p]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(p)
                state["momentum"].mul_(group["momentum"]).add_(p.grad)
                update = state["momentum"] / (state["momentum"].norm() + 1e-8)
                for _ in range(group["iterations"]):
                    update = 1.5 * update - 0.5 * update @ update.T @ update
                p.add_(update, alpha=-group["lr"])
        return loss


def data():
    x = torch.randn(960, 12)
    y = (x[:, :3].sum(1) > 0.8).long() + (x[:, 3] > 1).long()
    return TensorDataset(x, y)


def main():
    torch.manual_seed(19)
    loader = DataLoader(data(), batch_size=48, shuffle=True)
    model = nn.Sequential(nn.Linear(12, 24), nn.LayerNorm(24), nn.GELU(), nn.Linear(24, 3))
    optimizer = Orthogonal(model.parameters(), lr=0.02)
    for epoch in range(5):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
