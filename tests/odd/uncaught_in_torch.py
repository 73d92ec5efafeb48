# An exception from inside torch ends the script: its traceback has no frame of ours.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(torch.randn(8, 4)), torch.zeros(8, 1))
    loss.backward()
    optimizer.step()
    if step == 3:
        told(model)
        loss.backward()
