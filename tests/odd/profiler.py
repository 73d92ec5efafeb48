# torch.profiler around the forward passes.
import torch
from told import told
from torch import nn
from torch.profiler import ProfilerActivity, profile

torch.manual_seed(0)
model = nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        loss = torch.nn.functional.relu(model(torch.randn(8, 16))).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(sorted({event.key for event in seen.key_averages()} & {"aten::linear", "aten::relu", "aten::sum"}))
told(model)
