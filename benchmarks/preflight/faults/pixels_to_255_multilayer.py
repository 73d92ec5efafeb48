"""The same for a perceptron that flattens its images. Finds: TA301."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __init__(self):
        self.data = torch.randint(0, 256, (96, 1, 14, 14), dtype=torch.uint8)
        self.targets = torch.randint(0, 10, (96,))

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return self.data[index].float(), self.targets[index]


torch.manual_seed(0)
loader = DataLoader(Pictures(), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Flatten(), nn.Linear(196, 32), nn.ReLU(), nn.Linear(32, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x, y in loader:
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
