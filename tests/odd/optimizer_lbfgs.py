# LBFGS with a closure and a line search.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
x = torch.randn(32, 4)
y = x.exp().mean(1, keepdim=True)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.LBFGS(model.parameters(), line_search_fn="strong_wolfe", max_iter=5)
calls = 0


def closure():
    global calls
    calls += 1
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


for _ in range(4):
    print(f"{optimizer.step(closure).item():.8f}")
print(calls)
told(model)
