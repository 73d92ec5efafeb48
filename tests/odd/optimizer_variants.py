# foreach, fused, capturable, differentiable, maximize, amsgrad.
import torch
from told import told
from torch import nn

for options in (
    {"foreach": True},
    {"foreach": False},
    {"fused": True},
    {"maximize": True},
    {"amsgrad": True},
    {"differentiable": True},
):
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, **options)
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        if "differentiable" in options:
            with torch.no_grad():
                optimizer.step()
        else:
            optimizer.step()
    print(options)
    told(model)
