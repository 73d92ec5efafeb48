"""Classes of noisy waves, from features that are to be sparse."""

import torch
from torch import nn

torch.manual_seed(25)
features = nn.Sequential(nn.Linear(48, 96), nn.ReLU())
head = nn.Linear(96, 4)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD([*features.parameters(), *head.parameters()], lr=1e-4)
times = torch.linspace(0, 6.28, 48)


def waves(count):
    kinds = torch.randint(4, (count,))
    return torch.sin(times * (1 + kinds[:, None])) + 0.3 * torch.randn(count, 48), kinds


for step in range(60):
    x, y = waves(64)
    hidden = features(x)
    fit = criterion(head(hidden), y)  # bug: TA525 (runtime)
    sparsity = hidden.abs().sum()  # bug: TA525 (static)
    loss = fit + 0.1 * sparsity
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"{step}: {fit.item():.3f}")
