# Functions that call torch are scripted in the middle of a training.
import torch
from told import told
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return torch.log_softmax(self.layer(x).exp().sqrt() * 2, 1)


def stable(x):
    return torch.log(torch.exp(x) + 1) + torch.softmax(x, 0) + x.pow(2) + torch.nn.functional.mse_loss(x, x)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    optimizer.zero_grad()
    nn.functional.nll_loss(model(torch.randn(4, 4)), torch.tensor([0, 1, 2, 0])).backward()
    optimizer.step()
    if step == 2:
        scripted = torch.jit.script(stable)
        print(scripted.code)
        both = torch.jit.script(Net())
        print(both.code)
told(model, scripted(torch.ones(3)), both(torch.ones(1, 4)).shape)
