# EMA and SWA of torch, BatchNorm statistics updated at the end
import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn

torch.manual_seed(0)
data = [(torch.randn(32, 16), None) for _ in range(10)]
truth = torch.randn(16, 4)
data = [(x, (x @ truth).argmax(1)) for x, _ in data]
model = nn.Sequential(nn.Linear(16, 32, bias=False), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4))
ema_model = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
swa_model = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
swa_scheduler = SWALR(optimizer, swa_lr=0.02)
for epoch in range(10):
    for x, y in data:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        ema_model.update_parameters(model)
    if epoch > 5:
        swa_model.update_parameters(model)
        swa_scheduler.step()
    else:
        scheduler.step()
update_bn(data, swa_model)
