# Lion as lucidrains has it, Shampoo with a closure, torch's Adafactor and Muon, a warm-up from 0
import torch
from torch import nn
from torch.optim import Optimizer


class Lion(Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in filter(lambda p: p.grad is not None, group["params"]):
                state = self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p)
                exp_avg, (beta1, beta2) = state["exp_avg"], group["betas"]
                p.data.mul_(1.0 - group["lr"] * group["weight_decay"])
                update = exp_avg.clone().mul_(beta1).add(p.grad, alpha=1.0 - beta1).sign_()
                p.add_(update, alpha=-group["lr"])
                exp_avg.mul_(beta2).add_(p.grad, alpha=1.0 - beta2)


class Shampoo(Optimizer):
    def __init__(self, params, lr=1e-1, momentum=0.9, epsilon=1e-4):
        super().__init__(params, {"lr": lr, "momentum": momentum, "epsilon": epsilon})

    def step(self, closure=None):
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad, state = p.grad.data, self.state[p]
                if not state:
                    state["momentum"] = grad.clone()
                    state["left"] = group["epsilon"] * torch.eye(grad.shape[0])
                if group["momentum"] > 0:
                    grad.mul_(1 - group["momentum"]).add_(state["momentum"], alpha=group["momentum"])
                flat = grad.reshape(grad.shape[0], -1)
                state["left"] += flat @ flat.t()
                values, vectors = torch.linalg.eigh(state["left"])
                inverse = vectors @ torch.diag(values.clamp(min=1e-6) ** -0.5) @ vectors.t()
                state["momentum"] = grad.clone()
                p.data.add_((inverse @ flat).view_as(grad), alpha=-group["lr"])
        return loss


torch.manual_seed(0)
truth = torch.randn(16, 4)
makers = [
    lambda model: Lion(model.parameters(), lr=1e-3, weight_decay=0.01),
    lambda model: Shampoo(model.parameters(), lr=0.05),
    lambda model: torch.optim.Adafactor(model.parameters(), lr=0.01),
    lambda model: torch.optim.AdamW(model.parameters(), lr=1e-3),
]
if hasattr(torch.optim, "Muon"):  # since torch 2.9
    makers.append(lambda model: torch.optim.Muon([p for p in model.parameters() if p.dim() == 2], lr=0.01))
for make in makers:
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = make(model)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / 20))
    for _ in range(60):
        x = torch.randn(32, 16)
        y = (x @ truth).argmax(1)

        def closure(model=model, x=x, y=y):
            model.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            return loss

        if isinstance(optimizer, Shampoo):
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
        scheduler.step()
