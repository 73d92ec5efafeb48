# An interpreter and a transformer walk over the graph with tables of functions as keys.
import torch
from told import told
from torch import fx, nn

torch.manual_seed(0)
TABLE = {torch.exp: "exp", torch.log: "log", torch.softmax: "softmax", torch.mul: "mul"}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return torch.mul(torch.log(torch.exp(self.layer(x)) + 1), torch.softmax(x[:, :3], 1))


class Counting(fx.Interpreter):
    def call_function(self, target, args, kwargs):
        print(TABLE.get(target, "other"))
        return super().call_function(target, args, kwargs)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    model(torch.randn(4, 4)).sum().backward()
    optimizer.step()
    if step in (0, 2):
        Counting(fx.symbolic_trace(model)).run(torch.ones(2, 4))
told(model)
