# An iterable data set, split among workers, with a collate function and a timeout.
import torch
from told import told
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

torch.manual_seed(0)


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        for number in range(info.id if info else 0, 24, info.num_workers if info else 1):
            yield torch.full((4,), number / 24)


model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for workers in (0, 2):
    for x in DataLoader(
        Stream(),
        4,
        num_workers=workers,
        collate_fn=lambda each: {"x": torch.stack(each)},
        timeout=60 if workers else 0,
    ):
        optimizer.zero_grad()
        model(x["x"]).pow(2).mean().backward()
        optimizer.step()
told(model)
