# Model, optimizer, scheduler, loader and functions are copied while they are in use.
import copy

import torch
from told import told
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)
        self.act = torch.exp
        self.table = {
            "softmax": torch.softmax,
            torch.log: "log",
            "loss": nn.functional.mse_loss,
            "method": torch.Tensor.sqrt,
        }

    def forward(self, x):
        return self.act(self.layer(x))


model = Net()
optimizer = torch.optim.Adam(model.parameters())
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
loader = DataLoader(TensorDataset(torch.randn(32, 4)), batch_size=8)
for epoch in range(2):
    for (x,) in loader:
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
        copied = copy.deepcopy((model, optimizer, scheduler))
        print(
            copied[0].act is model.act,
            copied[0].act == torch.exp,
            copied[0].table[torch.log],
            copied[0].table["loss"] is nn.functional.mse_loss,
            copied[0].table["method"] == torch.Tensor.sqrt,
            copy.copy(torch.pow) == torch.pow,
        )
    scheduler.step()
    list(copy.deepcopy(loader))
twin = copied[0]
other = torch.optim.SGD(twin.parameters(), lr=0.1)
other.zero_grad()
twin(x).mean().backward()
other.step()
told(model, twin, copied[1])
