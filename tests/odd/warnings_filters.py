# Warnings are errors, are recorded, and are shown once for a line.
import warnings

import torch
from told import told
from torch import nn

warnings.simplefilter("error")
torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
    scheduler.step()
    try:
        nn.functional.mse_loss(torch.ones(2, 1), torch.ones(2))
    except UserWarning as error:
        print(str(error)[:60])
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        nn.functional.mse_loss(torch.ones(2, 1), torch.ones(2))
        warnings.warn("mine")
        print([(each.category.__name__, each.filename == __file__, each.lineno) for each in seen])
print(len(warnings.filters), warnings.filters[0][0])
told(model)
