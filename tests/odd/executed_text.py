# The training is text that is executed: exec, eval, compile, and a module that has no file.
import types

text = """
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self): super().__init__(); self.layer = nn.Linear(4, 1)
    def forward(self, x): return eval("self.layer(x).exp().log()")
model = Net(); optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad(); model(torch.randn(8, 4)).pow(2).mean().backward(); optimizer.step()
"""
from told import told

module = types.ModuleType("no_file")
exec(text, vars(module))
told(module.model)
names = {}
exec(compile(text, "<made>", "exec"), names)
told(names["model"])
exec(compile(text, "/nowhere/at/all.py", "exec"), other := {})
told(other["model"])
