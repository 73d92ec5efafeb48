import copy

import torch
from torch import nn
from torch.nn import functional as F


def MLP(dim, projection=16, hidden=64):
    return nn.Sequential(
        nn.Linear(dim, hidden, bias=False),
        nn.BatchNorm1d(hidden),
        nn.ReLU(inplace=True),
        nn.Linear(hidden, projection),
    )


class BYOL(nn.Module):
    def __init__(self, net, dim, decay=0.99):
        super().__init__()
        self.online_encoder = nn.Sequential(net, MLP(dim))
        self.online_predictor = MLP(16)
        self.target_encoder = copy.deepcopy(self.online_encoder)
        for p in self.target_encoder.parameters():
            p.requires_grad = False
        self.decay = decay

    @torch.no_grad()
    def update_moving_average(self):
        for current, ma in zip(
            self.online_encoder.parameters(), self.target_encoder.parameters(), strict=False
        ):
            ma.data = ma.data * self.decay + (1 - self.decay) * current.data

    def forward(self, one, two):
        pred_one = self.online_predictor(self.online_encoder(one))
        pred_two = self.online_predictor(self.online_encoder(two))
        with torch.no_grad():
            target_one, target_two = self.target_encoder(one), self.target_encoder(two)
        return (loss_fn(pred_one, target_two.detach()) + loss_fn(pred_two, target_one.detach())).mean()


def loss_fn(x, y):
    return 2 - 2 * (F.normalize(x, dim=-1) * F.normalize(y, dim=-1)).sum(dim=-1)


torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(3, 16, 3, 2, 1, bias=False),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
)
learner = BYOL(net, 16)
opt = torch.optim.Adam(learner.parameters(), lr=3e-4)
for _ in range(70):
    images = torch.randn(32, 3, 1, 1) + 0.5 * torch.randn(32, 3, 16, 16)
    loss = learner(images + 0.1 * torch.randn_like(images), images.flip(3))
    opt.zero_grad()
    loss.backward()
    opt.step()
    learner.update_moving_average()
