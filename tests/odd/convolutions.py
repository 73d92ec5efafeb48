# A small CNN with batch norm, pooling and channels last.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(3, 4, 3),
    nn.BatchNorm2d(4),
    nn.ReLU(inplace=True),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(4, 3),
).to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
for _ in range(6):
    x = torch.randn(4, 3, 8, 8).to(memory_format=torch.channels_last)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), torch.randint(0, 3, (4,))).backward()
    optimizer.step()
told(model, optimizer)
