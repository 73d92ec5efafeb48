# Hooks of optimizers: pre, post, state_dict, load_state_dict.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
seen = []
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
optimizer.register_step_pre_hook(lambda *a: seen.append("pre"))
optimizer.register_step_post_hook(lambda *a: seen.append("post"))
optimizer.register_state_dict_pre_hook(lambda *a: seen.append("saving"))
optimizer.register_load_state_dict_post_hook(lambda *a: seen.append("loaded"))
for _ in range(4):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
optimizer.load_state_dict(optimizer.state_dict())
from torch.optim import optimizer as module

print(seen, len(optimizer._optimizer_step_pre_hooks), sorted(vars(optimizer)))
told(model, optimizer)
