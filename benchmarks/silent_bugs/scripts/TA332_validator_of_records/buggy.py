"""A regression on records of two sensors, with a validator that keeps a list of errors."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Records(Dataset):
    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.days = torch.linspace(0, 1, count)
        self.x = torch.randn(count, 6, generator=generator)
        self.y = self.x.sum(1) + 3 * self.days**4

    def __len__(self):
        return len(self.y)

    def __getitem__(self, index):
        return {"x": self.x[index], "y": self.y[index]}


class Validator:
    def __init__(self, records):
        self.loader = DataLoader(records, batch_size=50)

    @torch.no_grad()
    def __call__(self, model):
        errors = []
        for batch in self.loader:
            error = (model(batch["x"]).squeeze(1) - batch["y"]).abs().mean().item()
            errors.append(error)  # bug: TA332 (runtime)
        return np.mean(errors)


torch.manual_seed(3)
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
loader = DataLoader(Records(640, seed=1), batch_size=64, shuffle=True)
validate = Validator(Records(154, seed=2))
for epoch in range(8):
    for batch in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(batch["x"]).squeeze(1), batch["y"])
        loss.backward()
        optimizer.step()
    print(epoch, validate(model))
