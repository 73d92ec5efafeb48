# Hooks of tensors and of nodes of the graph.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
seen = []
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model.weight.register_hook(lambda g: g.clamp(-0.1, 0.1))
model.bias.register_post_accumulate_grad_hook(lambda p: seen.append(tuple(p.grad.shape)))
for _ in range(5):
    out = model(torch.randn(8, 4))
    out.register_hook(lambda g: seen.append(tuple(g.shape)))
    out.retain_grad()
    loss = out.exp().mean()
    loss.grad_fn.register_hook(lambda gi, go: seen.append(len(gi)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    seen.append(out.grad is None)
print(seen, loss.grad_fn.name())
told(model)
