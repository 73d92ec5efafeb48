# Modules that pass unknown attributes on, and count who asks.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
asked = []


class Wrapper(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            asked.append(name)
            return getattr(self.inner, name)

    def forward(self, x):
        return self.inner(x)


class Magic(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def __getattr__(self, name):
        if name in ("_parameters", "_modules", "_buffers", "layer", "weight"):
            return super().__getattr__(name)
        raise AttributeError(name) if name.startswith("_") else RuntimeError(f"no {name}")

    def forward(self, x):
        return self.layer(x)


model = Wrapper(Magic())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
print(model.layer.in_features, asked)
told(model)
