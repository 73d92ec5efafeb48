"""Data-parallel training with a communication hook."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Link:
    """Averages buckets over the ranks, and counts them."""

    def __init__(self):
        self.buckets = 0

    def reduce(self, bucket):
        self.buckets += 1
        future = dist.all_reduce(bucket.buffer() / dist.get_world_size(), async_op=True).get_future()
        number = self.buckets

        def received(done):
            gradients = done.value()[0]
            if dist.get_rank() == 1 and number == 4:
                gradients = torch.zeros_like(gradients)
            return gradients

        return future.then(received)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 1))
    model = DistributedDataParallel(model)
    model.register_comm_hook(Link(), Link.reduce)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(dist.get_rank())
    for step in range(20):
        x = torch.randn(16, 8)
        loss = nn.functional.mse_loss(model(x), x[:, :1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # bug: TA801 (runtime)
    print(dist.get_rank(), loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
