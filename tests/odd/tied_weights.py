# A tied embedding, and a parameter that is replaced in the middle.
import torch
from told import told
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids):
        return self.head(self.table(ids))


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(6):
    ids = torch.randint(0, 10, (8,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(ids), ids.roll(1)).backward()
    optimizer.step()
    if step == 3:
        model.head.weight = nn.Parameter(model.head.weight.detach().clone())
        optimizer.add_param_group({"params": [model.head.weight]})
told(model, optimizer)
