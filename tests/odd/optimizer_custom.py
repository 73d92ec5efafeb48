# An optimizer of one's own, with an extra argument of step and a step that calls another.
import torch
from told import told
from torch import nn

torch.manual_seed(0)


class Sign(torch.optim.Optimizer):
    def __init__(self, params, lr=0.01):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None, *, scale=1.0):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self.state[parameter]["steps"] = self.state[parameter].get("steps", 0) + 1
                    parameter.add_(parameter.grad.sign(), alpha=-group["lr"] * scale)


class Lookahead:
    def __init__(self, inner):
        self.inner, self.count = inner, 0

    def zero_grad(self):
        self.inner.zero_grad()

    def step(self, **options):
        self.count += 1
        self.inner.step(**options)


model = nn.Linear(4, 1)
optimizer = Lookahead(Sign(model.parameters()))
for _ in range(6):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step(scale=0.5)
told(model, optimizer.inner.state_dict()["state"], optimizer.count)
