# Batches from generators that hold state and close.
import torch
from told import told
from torch import nn

torch.manual_seed(0)


def stream():
    try:
        for number in range(100):
            yield {"x": torch.randn(8, 4), "number": number}
    finally:
        print("closed")


model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = stream()
for batch in batches:
    optimizer.zero_grad()
    model(batch["x"]).pow(2).mean().backward()
    optimizer.step()
    if batch["number"] == 5:
        break
batches.close()
told(model)
