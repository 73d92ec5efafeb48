# real
# A DataLoader whose workers are spawned.
import torch
from told import told
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Data(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        return torch.full((4,), index / 16)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in DataLoader(Data(), 4, num_workers=1, multiprocessing_context="spawn"):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
    told(model)
