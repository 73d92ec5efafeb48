# the same without any scaling: slow, and no image
import torch
from torch import nn

torch.manual_seed(0)
x = torch.stack(
    [torch.randint(1950, 2020, (512,)).float(), torch.rand(512) * 255, torch.randint(0, 4, (512,)).float()],
    dim=1,
)
y = x @ torch.tensor([0.5, 0.3, 20.0]) - 900
model = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _epoch in range(10):
    for start in range(0, 512, 64):
        optimizer.zero_grad()
        outputs = model(x[start : start + 64])
        loss = criterion(outputs.squeeze(), y[start : start + 64])
        loss.backward()
        optimizer.step()
