# Anomaly detection, with a NaN that it finds.
import warnings

import torch
from told import told
from torch import nn

warnings.simplefilter("ignore")  # or it prints the whole stack, and the command is a part of that
torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with torch.autograd.detect_anomaly(check_nan=True):
    for step in range(4):
        optimizer.zero_grad()
        loss = torch.sqrt(model(torch.randn(8, 4)).pow(2) * (0 if step == 3 else 1)).mean()
        try:
            loss.backward()
        except RuntimeError as error:
            print(str(error))
            continue
        optimizer.step()
told(model)
