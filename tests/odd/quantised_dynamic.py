# Dynamic quantisation of a trained model.
import warnings

import torch
from told import told
from torch import nn

warnings.simplefilter("ignore")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 8)).pow(2).mean().backward()
    optimizer.step()
quantised = torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
with torch.no_grad():
    told(model, quantised(torch.ones(2, 8)))
