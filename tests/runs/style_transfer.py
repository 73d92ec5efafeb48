"""Neural style transfer: LBFGS on the image; the network's parameters ask for gradients and are in no optimizer."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
cnn = nn.Sequential(
    nn.Conv2d(3, 8, 3, 1, 1),
    nn.ReLU(),
    nn.Conv2d(8, 8, 3, 1, 1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, 1, 1),
).eval()


class Normalization(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.mean = torch.tensor(mean).view(-1, 1, 1)
        self.std = torch.tensor(std).view(-1, 1, 1)

    def forward(self, img):
        return (img - self.mean) / self.std


class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target.detach()

    def forward(self, x):
        self.loss = F.mse_loss(x, self.target)
        return x


def gram(x):
    a, b, c, d = x.size()
    f = x.view(a * b, c * d)
    return torch.mm(f, f.t()).div(a * b * c * d)


class StyleLoss(nn.Module):
    def __init__(self, t):
        super().__init__()
        self.target = gram(t).detach()

    def forward(self, x):
        self.loss = F.mse_loss(gram(x), self.target)
        return x


content, style = torch.rand(1, 3, 32, 32), torch.rand(1, 3, 32, 32)
model = nn.Sequential(Normalization([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
cls, sls = [], []
i = 0
for layer in cnn.children():
    if isinstance(layer, nn.ReLU):
        layer = nn.ReLU(inplace=False)
    model.add_module(str(i := i + 1), layer)
    if isinstance(layer, nn.Conv2d):
        cl = ContentLoss(model(content).detach())
        model.add_module(f"c{i}", cl)
        cls.append(cl)
        sl = StyleLoss(model(style).detach())
        model.add_module(f"s{i}", sl)
        sls.append(sl)
img = content.clone()
img.requires_grad_(True)
model.eval()
model.requires_grad_(False)
opt = torch.optim.LBFGS([img])
run = [0]
while run[0] <= 40:

    def closure():
        with torch.no_grad():
            img.clamp_(0, 1)
        opt.zero_grad()
        model(img)
        loss = 1e6 * sum(s.loss for s in sls) + sum(c.loss for c in cls)
        loss.backward()
        run[0] += 1
        return loss

    opt.step(closure)
