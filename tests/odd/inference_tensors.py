# Inference tensors as inputs of a training, and a model that is built in inference mode.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
with torch.inference_mode():
    data = torch.randn(6, 8, 4)
    frozen = nn.Linear(4, 4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in data:
    with torch.inference_mode():
        hidden = frozen(x)
    optimizer.zero_grad()
    model(hidden.clone()).pow(2).mean().backward()
    optimizer.step()
told(model, frozen.weight.clone())
