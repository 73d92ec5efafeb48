"""Segmentation head with branches of several dilations and one of the whole image."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def branch(inputs, outputs, dilation):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=dilation, dilation=dilation, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


class ImageBranch(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.project = nn.Conv2d(inputs, outputs, 1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x):
        pooled = F.adaptive_avg_pool2d(x, 1)
        return F.relu(self.norm(self.project(pooled))).expand(-1, -1, *x.shape[2:])


class Head(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.branches = nn.ModuleList([branch(3, width, d) for d in (1, 2, 4)])
        self.image = ImageBranch(3, width)
        self.classify = nn.Conv2d(4 * width, 2, 1)

    def forward(self, x):
        parts = [b(x) for b in self.branches] + [self.image(x)]
        return self.classify(torch.cat(parts, dim=1))


def crops(n, size=24):
    image = torch.randn(n, 3, size, size)
    smooth = F.avg_pool2d(image[:, :1], 5, stride=1, padding=2)
    return image + 2 * smooth, (smooth[:, 0] > 0).long()


def main():
    torch.manual_seed(40)
    model = Head()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    schedule = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=80, power=0.9)
    model.train()
    for step in range(80):
        image, mask = crops(4)
        scores = model(image)  # bug: TA304 (runtime)
        loss = F.cross_entropy(scores, mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 16 == 0:
            print(step, round(loss.item(), 4))


if __name__ == "__main__":
    main()
