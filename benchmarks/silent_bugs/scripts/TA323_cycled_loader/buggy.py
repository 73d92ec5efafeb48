from itertools import cycle

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __init__(self, count):
        self.signals = torch.randn(count, 16)

    def __len__(self):
        return len(self.signals)

    def __getitem__(self, index):
        clean = self.signals[index]
        return clean + 0.5 * torch.randn(16), clean


torch.manual_seed(0)
loader = DataLoader(Noisy(256), batch_size=32, shuffle=True)
data = cycle(loader)  # bug: TA323
model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for step in range(80):
    noisy, clean = next(data)
    loss = nn.functional.mse_loss(model(noisy), clean)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(step, loss.item())
