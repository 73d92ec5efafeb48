# Parametrizations: orthogonal, weight_norm, one's own; removed at the end.
import torch
from told import told
from torch import nn
from torch.nn.utils import parametrizations, parametrize

torch.manual_seed(0)


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T


first, second, third = (
    parametrizations.orthogonal(nn.Linear(4, 4)),
    parametrizations.weight_norm(nn.Linear(4, 4)),
    nn.Linear(4, 4),
)
parametrize.register_parametrization(third, "weight", Symmetric())
model = nn.Sequential(first, second, third)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
parametrize.remove_parametrizations(third, "weight")
print(sorted(model.state_dict()))
told(model)
