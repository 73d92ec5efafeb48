"""Data parallelism without a wrapper: broadcast once, then average gradients."""

import torch
import torch.distributed as dist
from torch import nn


class Replicated:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        tensors = list(model.state_dict().values())
        for tensor in tensors[:-1]:
            dist.broadcast(tensor, src=0)

    def step(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        for parameter in self.model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
        self.optimizer.step()  # bug: TA801 (runtime)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    replicated = Replicated(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)), lr=0.1)
    for _ in range(15):
        x = torch.randn(16, 6)
        loss = nn.functional.cross_entropy(replicated.model(x), x[:, :3].argmax(dim=1))
        replicated.step(loss)
    print(dist.get_rank(), loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
