# Every kind of scheduler, chained, sequential and on plateau, saved and loaded.
import torch
from told import told
from torch import nn
from torch.optim import lr_scheduler

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
made = [
    lr_scheduler.StepLR(optimizer, 3),
    lr_scheduler.LambdaLR(optimizer, lambda step: 0.9**step),
    lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=20),
    lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 4),
    lr_scheduler.ReduceLROnPlateau(optimizer, patience=1),
    lr_scheduler.SequentialLR(
        optimizer, [lr_scheduler.LinearLR(optimizer), lr_scheduler.ExponentialLR(optimizer, 0.9)], [3]
    ),
    lr_scheduler.ChainedScheduler([lr_scheduler.ConstantLR(optimizer), lr_scheduler.PolynomialLR(optimizer)]),
]
for step in range(8):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 4)).pow(2).mean()
    loss.backward()
    optimizer.step()
    for each in made:
        each.step(loss) if isinstance(each, lr_scheduler.ReduceLROnPlateau) else each.step()
    print(f"{optimizer.param_groups[0]['lr']:.6f}")
told(
    model,
    [
        each.state_dict()
        for each in made
        if not isinstance(
            each, (lr_scheduler.LambdaLR, lr_scheduler.SequentialLR, lr_scheduler.ChainedScheduler)
        )
    ],
    [sorted(vars(each)) for each in made],
)
