"""Meta-learning (Reptile) of sine waves; the curve of losses goes into a table."""

import copy
import csv

import torch
from torch import nn


class Task:
    def __init__(self):
        self.height = 0.5 + 1.5 * torch.rand(())
        self.phase = 3.1416 * torch.rand(())

    def sample(self, count):
        x = 6 * torch.rand(count, 1) - 3
        return x / 3, self.height * torch.sin(x + self.phase)


def network():
    return nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))


def adapt(meta, task, steps, lr):
    learner = copy.deepcopy(meta)
    optimizer = torch.optim.SGD(learner.parameters(), lr=lr)
    for _ in range(steps):
        x, y = task.sample(20)
        loss = nn.functional.mse_loss(learner(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return learner, loss.item()


def main(rounds=40):
    torch.manual_seed(29)
    meta, curve = network(), []
    for number in range(rounds):
        learner, last = adapt(meta, Task(), steps=5, lr=0.05)
        with torch.no_grad():
            for slow, fast in zip(meta.parameters(), learner.parameters()):
                slow.lerp_(fast, 0.3)
        curve.append(last)
        if (number + 1) % 20 == 0:
            torch.save({"round": number, "model": meta.state_dict()}, "meta.pt")
    with open("curve.csv", "w", newline="") as file:
        csv.writer(file).writerows(enumerate(curve))
    print(f"first ten {sum(curve[:10]) / 10:.3f}, last ten {sum(curve[-10:]) / 10:.3f}")


if __name__ == "__main__":
    main()
