# Updates by hand under no_grad and through .data, without any optimizer.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.Sigmoid(), nn.Linear(4, 1))
for step in range(8):
    model.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    if step % 2:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
    else:
        for parameter in model.parameters():
            parameter.data.add_(parameter.grad, alpha=-0.1)
told(model)
