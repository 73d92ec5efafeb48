# torch.compile is first used after some steps, with aot_eager, and counts its graphs.
import torch
from told import told
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return torch.softmax(torch.log(self.layer(x).pow(2) + 1) * 2, 1)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(forward, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        forward(torch.randn(4, 4)).pow(2).sum().backward()
        optimizer.step()


train(model, 4)
from torch._dynamo.utils import counters

train(torch.compile(model, backend="aot_eager", fullgraph=True), 4)
print(dict(counters["stats"]), dict(counters["graph_break"]))
told(model)
