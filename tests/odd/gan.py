# Two optimizers, alternating, with detach.
import torch
from told import told
from torch import nn

torch.manual_seed(0)
maker, judge = nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
first, second = torch.optim.Adam(maker.parameters(), lr=0.01), torch.optim.Adam(judge.parameters(), lr=0.01)
for _ in range(6):
    fake = maker(torch.randn(8, 3))
    second.zero_grad()
    loss = -(torch.log(judge(torch.randn(8, 4))) + torch.log(1 - judge(fake.detach()))).mean()
    loss.backward()
    second.step()
    first.zero_grad()
    (-torch.log(judge(fake)).mean()).backward()
    first.step()
told(maker, judge)
