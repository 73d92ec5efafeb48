"""Sign descent with a decaying step, for a small image model."""

import torch
import torch.nn.functional as F
from torch import nn


class SignDescent(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    update = parameter.grad.sign() * group["lr"]
                    parameter.sub_(update)


class TinyConvNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 3, padding=1)
        self.conv2 = nn.Conv2d(6, 12, 3, padding=1)
        self.fc = nn.Linear(12 * 9, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


def bars(count):
    """A bright row in one of four heights."""
    labels = torch.randint(4, (count,))
    images = 0.4 * torch.randn(count, 1, 12, 12)
    rows = labels * 3 + 1
    images[torch.arange(count), 0, rows] += 1.2
    return images, labels


def main(steps=120, batch=40):
    torch.manual_seed(27)
    model = TinyConvNet(classes=4)
    optimizer = SignDescent(model.parameters(), lr=2e-3)
    recent = []
    for step in range(1, steps + 1):
        images, labels = bars(batch)
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        recent.append(loss.item())
        if step % 30 == 0:
            print(f"step {step}: {sum(recent[-30:]) / 30:.3f}")


if __name__ == "__main__":
    main()
