# An exception ends the script, with a cause, a note and an excepthook of the script.
import sys

import torch
from told import told
from torch import nn

torch.manual_seed(0)
hook = sys.excepthook


def own(kind, error, trace):
    print("hook", kind.__name__, error)
    hook(kind, error, trace)


sys.excepthook = own
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train():
    for step in range(9):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 4)).pow(2).mean()
        loss.backward()
        optimizer.step()
        if step == 4:
            told(model)
            try:
                {}["missing"]
            except KeyError as error:
                late = ValueError("the data is broken")
                late.add_note("in file 3")
                raise late from error


train()
