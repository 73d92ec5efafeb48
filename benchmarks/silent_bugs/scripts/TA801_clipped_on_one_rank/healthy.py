"""Tensor parallelism over two ranks: a split linear layer, and a layer norm that both have."""

import torch
import torch.distributed as dist
from torch import nn


class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class ParallelBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, width)  # half of the columns
        self.down = nn.Linear(width, 1, bias=False)

    def forward(self, x):
        return SumOverRanks.apply(self.down(torch.relu(self.up(self.norm(x)))))


def clip(model, limit):
    replicated = [p.grad for p in model.norm.parameters()]
    split = [p.grad for p in [*model.up.parameters(), *model.down.parameters()]]
    for gradient in replicated:  # each rank has its part of the sum
        dist.all_reduce(gradient)
    square = sum(g.pow(2).sum() for g in split)
    dist.all_reduce(square)
    square = square + sum(g.pow(2).sum() for g in replicated)
    scale = (limit / (square.sqrt() + 1e-6)).clamp(max=1.0)
    for gradient in [*split, *replicated]:
        gradient.mul_(scale)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    block = ParallelBlock(16)
    optimizer = torch.optim.SGD(block.parameters(), lr=0.1)
    torch.manual_seed(99)  # the same batches on both
    for _ in range(15):
        x = torch.randn(32, 16)
        loss = nn.functional.mse_loss(block(x), 4 * x[:, :1])
        optimizer.zero_grad()
        loss.backward()
        clip(block, 0.5)
        optimizer.step()
    print(dist.get_rank(), loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
