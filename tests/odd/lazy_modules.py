# Lazy modules that get their shapes from the first batch.
import warnings

import torch
from told import told
from torch import nn

warnings.filterwarnings("ignore", message="Lazy")
torch.manual_seed(0)
model = nn.Sequential(nn.LazyLinear(8), nn.LazyBatchNorm1d(), nn.ReLU(), nn.LazyLinear(1))
optimizer = None
for _ in range(6):
    out = model(torch.randn(8, 4))
    if optimizer is None:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.zero_grad()
    out.pow(2).mean().backward()
    optimizer.step()
told(model, [type(each).__name__ for each in model])
