# A model is made on the meta device and filled later.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
with torch.device("meta"):
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    ghost = model(torch.randn(2, 4))
    numbers = torch.randint(0, 3, (2,))
print(ghost.shape, ghost.device, numbers.device)
model = model.to_empty(device="cpu")
for parameter in model.parameters():
    nn.init.normal_(parameter, std=0.1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
    with torch.device("meta"):
        print(torch.randint(0, 3, (2,)).device, torch.exp(torch.ones(1)).device)
told(model)
