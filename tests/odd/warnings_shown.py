# Warnings of torch as they come, on standard error.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
scheduler.step()
for _ in range(5):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(torch.randn(8, 4)), torch.ones(8))
    loss.backward()
    optimizer.step()
    torch.tensor(loss)
    loss.exp().grad
    torch.nn.functional.softmax(torch.ones(2, 2))
    torch.ones(2).sqrt().__array_priority__
told(model)
