"""Data-parallel classification with numbers of its own about hard samples."""

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def dataset(count):
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(count, 4, generator=draw)
    y = (x[:, 0] + 0.3 * x[:, 1] > 0).long()
    y[1::2] = torch.where(torch.rand(count // 2, generator=draw) < 0.1, 1 - y[1::2], y[1::2])
    return TensorDataset(x, y)


class Counter:
    """Counts samples and right answers and adds up the loss of hard samples."""

    def __init__(self, hard_from):
        self.hard_from = hard_from
        self.right, self.seen, self.hard = 0, 0, 0

    def update(self, logits, labels):
        losses = nn.functional.cross_entropy(logits.detach(), labels, reduction="none")
        self.right += int((logits.argmax(dim=1) == labels).sum())
        self.seen += len(labels)
        hard = losses[losses > self.hard_from]
        if len(hard):
            self.hard += float(hard.sum())

    def total(self):
        numbers = torch.from_numpy(np.array([self.right, self.seen, self.hard]))
        dist.all_reduce(numbers)  # bug: TA810 (runtime)
        return numbers.tolist()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(2)
    data = dataset(1280)
    sampler = DistributedSampler(data, shuffle=False)
    loader = DataLoader(data, batch_size=32, sampler=sampler)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        counter = Counter(hard_from=2.0)
        for x, labels in loader:
            logits = model(x)
            loss = nn.functional.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            counter.update(logits, labels)
        right, seen, hard = counter.total()
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: right {right} of {seen}, loss of hard samples {hard}")
    dist.destroy_process_group()


main()
