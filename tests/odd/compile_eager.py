# torch.compile with the eager backend, whole graphs only.
import torch
from told import told
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return torch.log_softmax(torch.exp(self.layer(x)).sqrt() * 2, 1)


model = Net()
compiled = torch.compile(model, backend="eager", fullgraph=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    optimizer.zero_grad()
    nn.functional.nll_loss(compiled(torch.randn(4, 4)), torch.tensor([0, 1, 2, 0])).backward()
    optimizer.step()
told(model)
