# A locale, a time zone and a decimal context of the script.
import decimal
import locale
import os
import time

import torch
from told import told
from torch import nn

print(locale.setlocale(locale.LC_ALL, "C"))
os.environ["TZ"] = "Asia/Tokyo"
time.tzset()
decimal.getcontext().prec = 3
torch.set_printoptions(precision=2, sci_mode=True)
torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
print(model.weight, locale.getlocale(), time.tzname, decimal.getcontext().prec)
told(model)
