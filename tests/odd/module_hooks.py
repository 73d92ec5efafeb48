# Hooks of modules that change what goes through: forward, pre, backward, full backward pre, global ones.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
order = []
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model[0].register_forward_pre_hook(lambda m, a: (order.append("pre"), (a[0] * 2,))[1])
model[0].register_forward_hook(lambda m, a, out: (order.append("forward"), out.clamp(-1, 1))[1])
model[2].register_full_backward_hook(lambda m, gi, go: order.append("backward"))
model[2].register_full_backward_pre_hook(lambda m, go: (order.append("backward pre"), (go[0] * 0.5,))[1])
handle = nn.modules.module.register_module_forward_hook(
    lambda m, a, out: order.append(f"global {type(m).__name__}")
)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
handle.remove()
print(order, [len(each._forward_hooks) for each in model])
told(model)
