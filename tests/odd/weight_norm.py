# The old hooks: weight_norm and spectral_norm of torch.nn.utils.
import warnings

import torch
from told import told
from torch import nn
from torch.nn import utils

warnings.simplefilter("ignore")
torch.manual_seed(0)
model = nn.Sequential(
    utils.weight_norm(nn.Linear(4, 4)),
    nn.ReLU(),
    utils.spectral_norm(nn.Linear(4, 1)),
    utils.parametrizations.spectral_norm(nn.Linear(1, 1)),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
utils.remove_weight_norm(model[0])
told(model)
