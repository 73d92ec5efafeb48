# Forward mode differentiation beside a training.
import torch
from told import told
from torch import nn
from torch.autograd import forward_ad

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(
            model(forward_ad.make_dual(torch.ones(1, 4), torch.ones(1, 4))).exp()
        ).tangent
told(model, tangent)
