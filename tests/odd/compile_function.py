# A compiled training step that is a function.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


@torch.compile(backend="eager")
def loss_of(x):
    return torch.exp(model(x)).pow(2).mean().log()


for _ in range(5):
    optimizer.zero_grad()
    loss = loss_of(torch.randn(8, 4))
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.6f}")
told(model)
