# The default dtype is float64, and the default device is named.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
torch.set_default_device("cpu")
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).exp().mean().log().backward()
    optimizer.step()
print(torch.get_default_dtype(), torch.tensor(1.0).dtype, torch.get_default_device())
told(model, optimizer)
