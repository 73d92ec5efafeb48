# ParameterList, ParameterDict, ModuleDict, nested and changed while training.
import torch
from told import told
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = nn.ParameterList([torch.ones(4) for _ in range(2)])
        self.named = nn.ParameterDict({"shift": torch.zeros(4)})
        self.parts = nn.ModuleDict({"a": nn.Linear(4, 4)})

    def forward(self, x):
        for part in self.parts.values():
            x = part(x)
        return x * self.scales[0] * self.scales[1] + self.named["shift"]


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
    if step == 2:
        model.parts["b"] = nn.Linear(4, 4)
        optimizer.add_param_group({"params": list(model.parts["b"].parameters())})
told(model)
