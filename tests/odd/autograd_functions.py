# Functions of autograd of one's own: straight-through, with setup_context, with several outputs, once differentiable.
import torch
from told import told
from torch import nn
from torch.autograd.function import once_differentiable

torch.manual_seed(0)


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


class Split(torch.autograd.Function):
    @staticmethod
    def forward(x, factor):
        return x.exp() * factor, x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output[0])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    @once_differentiable
    def backward(ctx, g, h):
        return g * ctx.saved_tensors[0], None


model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    a, b = Split.apply(model(torch.randn(8, 4)), 0.5)
    optimizer.zero_grad()
    (Round.apply(a) + b).mean().backward()
    optimizer.step()
told(model)
