import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
centers = 2 * torch.randn(3, 6)


def batch():
    labels = torch.randint(3, (32,))
    return centers[labels] + torch.randn(32, 6), labels


for step in range(60):
    x, y = batch()
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(step, loss.item())
    optimizer.step()  # bug: TA626
