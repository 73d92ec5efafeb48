import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential()
model.add_module("stem", nn.Sequential(nn.Conv2d(1, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU()))
model.add_module("pool", nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten()))
model.add_module("head", nn.Linear(32, 2))
for name, parameter in model.named_parameters():
    parameter.requires_grad_(name.startswith("head"))
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.05)


def batch():
    labels = torch.randint(2, (16,))
    return torch.randn(16, 1, 8, 8) + labels.view(-1, 1, 1, 1), labels


def set_modes():
    model.train()
    model.get_submodule("stem").eval()


set_modes()
for step in range(40):
    images, labels = batch()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(step, loss.item())
