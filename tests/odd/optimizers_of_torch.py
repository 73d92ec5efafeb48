# Every optimizer of torch.optim trains a few steps.
import torch
from told import told
from torch import nn

for kind in (
    torch.optim.SGD,
    torch.optim.Adam,
    torch.optim.AdamW,
    torch.optim.NAdam,
    torch.optim.RAdam,
    torch.optim.Adagrad,
    torch.optim.Adadelta,
    torch.optim.Adamax,
    torch.optim.ASGD,
    torch.optim.RMSprop,
    torch.optim.Rprop,
    torch.optim.Adafactor,
):
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = kind(model.parameters(), lr=0.01)
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()
    print(kind.__name__)
    told(model, optimizer)
