# Errors of torch are caught and printed, with their tracebacks.
import traceback

import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 4)).pow(2).mean()
    loss.backward()
    optimizer.step()
    for wrong in (
        lambda: model(torch.randn(8, 5)),
        lambda: torch.exp("text"),
        lambda: torch.softmax(loss, 7),
        lambda: loss.backward(),
        lambda: torch.ones(2).item(),
        lambda: nn.functional.cross_entropy(torch.ones(2, 2), torch.tensor([0, 5])),
        lambda: torch.load("nowhere.pt"),
    ):
        try:
            wrong()
        except Exception as error:
            print(
                type(error).__name__,
                str(error).splitlines()[0],
                [entry.name for entry in traceback.extract_tb(error.__traceback__)],
            )
told(model)
