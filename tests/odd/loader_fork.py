# A DataLoader with forked workers, a worker_init_fn and a generator.
import torch
from told import told
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

torch.manual_seed(0)


class Data(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        return torch.randn(4) + self.shift, index


def begin(number):
    get_worker_info().dataset.shift = float(number)


generator = torch.Generator().manual_seed(3)
loader = DataLoader(
    Data(), 4, shuffle=True, num_workers=2, worker_init_fn=begin, generator=generator, persistent_workers=True
)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
order = []
for epoch in range(2):
    for x, index in loader:
        order += index.tolist()
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
print(order)
told(model)
