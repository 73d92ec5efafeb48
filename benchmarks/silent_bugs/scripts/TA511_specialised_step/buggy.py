"""An optimizer whose step is specialised on its first use, as compilers do."""

import torch
from torch import nn


class SpecialisedSGD(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})
        self._active = None

    @torch.no_grad()
    def step(self, closure=None):
        if self._active is None:
            self._active = [p for p in self._parameters() if p.grad is not None]
        for parameter, lr in self._active_with_rate():
            parameter -= lr * parameter.grad

    def _parameters(self):
        return [p for group in self.param_groups for p in group["params"]]

    def _active_with_rate(self):
        return [(p, self.param_groups[0]["lr"]) for p in self._active]


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = SpecialisedSGD(model.parameters(), lr=0.05)  # bug: TA511 (runtime)
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
