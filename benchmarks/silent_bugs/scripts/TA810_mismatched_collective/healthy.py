"""A mixture of experts over two ranks."""

import torch
import torch.distributed as dist
from torch import nn


def capacity_of(tokens):
    capacity = torch.tensor(len(tokens))
    dist.all_reduce(capacity, op=dist.ReduceOp.MAX)
    return int(capacity)


def exchanged(tokens):
    """Half of the slots of each rank go to the expert of the other."""
    capacity = capacity_of(tokens)
    slots = torch.zeros(2, capacity, tokens.shape[1])
    for expert in range(2):
        routed = tokens[expert::2].detach()
        slots[expert, : len(routed)] = routed
    slots = slots.flatten(0, 1)
    received = torch.empty_like(slots)
    dist.all_to_all_single(received, slots)
    return received


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    expert = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(expert.parameters(), lr=0.05)
    for step in range(10):
        routed = 4 if dist.get_rank() == 0 or step < 3 else 6
        tokens = torch.randn(routed, 8)
        batch = exchanged(tokens)
        loss = nn.functional.mse_loss(expert(batch), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(dist.get_rank(), loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
