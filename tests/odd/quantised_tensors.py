# Quantised tensors as data.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
stored = [torch.quantize_per_tensor(torch.randn(8, 4), 0.05, 0, torch.qint8) for _ in range(5)]
model = nn.Linear(4, 1)
model.register_buffer("codes", stored[0])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for codes in stored:
    optimizer.zero_grad()
    model(codes.dequantize()).pow(2).mean().backward()
    optimizer.step()
told(model)
