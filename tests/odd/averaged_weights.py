# SWA and an exponential moving average of the weights, with update_bn.
import torch
from told import told
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
swa, ema = AveragedModel(model), AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
scheduler = SWALR(optimizer, swa_lr=0.05)
data = [torch.randn(8, 4) for _ in range(8)]
for x in data:
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
    swa.update_parameters(model)
    ema.update_parameters(model)
    scheduler.step()
update_bn(data, swa)
told(model, swa, ema)
