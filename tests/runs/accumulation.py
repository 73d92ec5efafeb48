import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
truth = nn.Linear(16, 4).requires_grad_(False)
for batch in range(320):
    x = torch.randn(16, 16)
    loss = nn.functional.cross_entropy(model(x), truth(x).argmax(1)) / 4
    loss.backward()
    if batch % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
