# as in davda54/sam: two backward passes, two steps
import torch
from torch import nn
from torch.nn import functional as F


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups
        self.defaults.update(self.base_optimizer.defaults)

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        norms = [
            p.grad.norm(p=2) for group in self.param_groups for p in group["params"] if p.grad is not None
        ]
        grad_norm = torch.norm(torch.stack(norms), p=2)  # noqa: TA901 - as the reference code has it
        for group in self.param_groups:
            scale = group["rho"] / (grad_norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["old_p"] = p.data.clone()
                p.add_(p.grad * scale.to(p))
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data = self.state[p]["old_p"]
        self.base_optimizer.step()
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        closure = torch.enable_grad()(closure)
        self.first_step(zero_grad=True)
        closure()
        self.second_step()


torch.manual_seed(0)
truth = torch.randn(16, 4)
for by_closure in (False, True):
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
    for _ in range(60):
        x = torch.randn(32, 16)
        y = (x @ truth).argmax(1)
        if by_closure:

            def closure(model=model, x=x, y=y):
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                return loss

            closure()
            optimizer.step(closure)
            optimizer.zero_grad()
        else:
            F.cross_entropy(model(x), y).backward()
            optimizer.first_step(zero_grad=True)
            F.cross_entropy(model(x), y).backward()
            optimizer.second_step(zero_grad=True)
