# torch.overrides knows its functions while a training runs.
import torch
from told import told
from torch import nn, overrides

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
NAMES = "exp log sqrt softmax log_softmax pow mul"
for step in range(4):
    optimizer.zero_grad()
    model(torch.randn(4, 4)).sum().backward()
    print(
        [
            overrides.resolve_name(getattr(owner, name))
            for owner in (torch, torch.Tensor)
            for name in NAMES.split()
        ],
        [getattr(torch, name) in overrides.get_testing_overrides() for name in NAMES.split()],
        [overrides.is_tensor_method_or_property(getattr(torch.Tensor, name)) for name in NAMES.split()],
    )
    print(
        len(overrides.get_testing_overrides()),
        sum(map(len, overrides.get_overridable_functions().values())),
        torch.randint in overrides.get_ignored_functions(),
    )
    optimizer.step()
told(model)
