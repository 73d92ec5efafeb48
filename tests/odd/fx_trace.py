# Symbolic tracing, a pass over the graph, and training of the result.
import operator

import torch
from told import told
from torch import fx, nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return torch.softmax(torch.exp(self.layer(x)).sqrt() * 2, 1).gather(
            1, torch.zeros(4, 1, dtype=torch.long)
        ) + torch.log(x.pow(2).mean() + 1)


model = Net()
graph = fx.symbolic_trace(model)
print(graph.code)
found = [
    node.name
    for node in graph.graph.nodes
    if node.target == torch.exp or node.target == torch.softmax or node.target is operator.mul
]
print(found)
for node in graph.graph.nodes:
    if node.target == torch.exp:
        node.target = torch.sqrt if False else torch.tanh
graph.recompile()
optimizer = torch.optim.SGD(graph.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    graph(torch.randn(4, 4)).mean().backward()
    optimizer.step()
again = fx.symbolic_trace(model)
print(
    again.code,
    [
        str(node.target)
        for node in again.graph.nodes
        if node.op == "call_function" and "at 0x" not in str(node.target)
    ],
)
told(graph, model)
