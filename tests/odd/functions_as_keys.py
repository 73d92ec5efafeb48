# Functions of torch as keys and members, made before, while and after steps are looked at.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def made():
    return {
        torch.exp: 1,
        torch.log: 2,
        torch.softmax: 3,
        torch.Tensor.exp: 4,
        torch.Tensor.item: 5,
        nn.functional.cross_entropy: 6,
        torch.autograd.backward: 7,
        nn.Module.train: 8,
        torch.pow: 9,
        torch.mul: 10,
    }


tables = [made()]
for step in range(30):
    optimizer.zero_grad()
    model(torch.randn(4, 4)).sum().backward()
    tables.append(made())
    optimizer.step()
tables.append(made())
print(
    all(table == tables[0] for table in tables),
    {len({*tables[0], *table}) for table in tables},
    torch.exp in tables[0],
    torch.exp != torch.log,
)
told(model)
