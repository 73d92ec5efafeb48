import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call


class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x):
        return self.net(x)


def task():
    phase = torch.rand(1) * 3
    x = torch.rand(10, 1)
    return x[:5], torch.sin(x[:5] + phase), x[5:], torch.sin(x[5:] + phase)


learner = Learner()
meta_optimizer = torch.optim.Adam(learner.parameters(), lr=1e-2)
for step in range(3):
    meta_optimizer.zero_grad()
    total = 0
    for _ in range(2):
        x, y, x_query, y_query = task()
        fast = dict(learner.named_parameters())
        inner = F.mse_loss(functional_call(learner, fast, (x,)), y)
        grads = torch.autograd.grad(inner, fast.values(), create_graph=True)
        fast = {name: value - 0.1 * grad for (name, value), grad in zip(fast.items(), grads)}
        total = total + F.mse_loss(functional_call(learner, fast, (x_query,)), y_query)
    total.backward()
    meta_optimizer.step()
