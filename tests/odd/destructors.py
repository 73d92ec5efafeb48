# Objects with __del__, and cycles, while the training runs.
import gc

import torch
from told import told
from torch import nn

torch.manual_seed(0)
gone = []


class Part(nn.Linear):
    def __init__(self, number):
        super().__init__(4, 4)
        self.number = number
        self.circle = [self]

    def __del__(self):
        gone.append(self.number)


for number in range(4):
    model = nn.Sequential(Part(number), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()
    told(model)
    del model[0].circle
print(gc.isenabled(), gc.get_threshold(), gc.get_freeze_count() >= 0, gone[:2])
