# Batches of ragged sequences as nested tensors, strided and jagged.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for layout in (torch.strided, torch.jagged):
    for _ in range(4):
        batch = torch.nested.nested_tensor([torch.randn(2, 4), torch.randn(5, 4)], layout=layout)
        optimizer.zero_grad()
        out = model(batch)
        loss = sum(part.pow(2).mean() for part in out.unbind())
        loss.backward()
        optimizer.step()
told(model, loss)
