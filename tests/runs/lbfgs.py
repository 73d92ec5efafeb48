# as in pytorch/examples: time_sequence_prediction, and a physics-informed network
import torch
from torch import nn

torch.manual_seed(0)
x = torch.linspace(0, 1, 50).view(-1, 1)
model = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1)).double()
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.8, max_iter=10, line_search_fn="strong_wolfe")
points = x.double().requires_grad_()


def closure():
    optimizer.zero_grad()
    u = model(points)
    du = torch.autograd.grad(u, points, torch.ones_like(u), create_graph=True)[0]
    d2u = torch.autograd.grad(du, points, torch.ones_like(du), create_graph=True)[0]
    ends = model(torch.tensor([[0.0], [1.0]], dtype=torch.float64))
    loss = ((d2u + torch.pi**2 * torch.sin(torch.pi * points)) ** 2).mean() + 10 * (ends**2).mean()
    loss.backward()
    return loss


for _i in range(20):
    optimizer.step(closure)
