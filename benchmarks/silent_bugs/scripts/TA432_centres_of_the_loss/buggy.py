"""Metric learning with a margin in the angle to a direction per class."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class AngularMargin(nn.Module):
    def __init__(self, classes, width, margin=0.2, scale=8.0):
        super().__init__()
        self.directions = nn.Parameter(torch.randn(classes, width) / math.sqrt(width))
        self.margin, self.scale = margin, scale

    def forward(self, embedding, labels):
        cosine = F.linear(F.normalize(embedding), F.normalize(self.directions))
        target = F.one_hot(labels, len(self.directions)).to(cosine.dtype)
        return F.cross_entropy(self.scale * (cosine - self.margin * target), labels)


class EmbeddingNet(nn.Sequential):
    def __init__(self, inputs, width):
        super().__init__(nn.Linear(inputs, 32), nn.PReLU(), nn.Linear(32, width))


def faces(count, people):
    labels = torch.randint(len(people), (count,))
    return people[labels] + 0.8 * torch.randn(count, people.shape[1]), labels


@torch.no_grad()
def retrieval(net, people):
    net.eval()
    queries, labels = faces(200, people)
    gallery, names = faces(200, people)
    near = (F.normalize(net(queries)) @ F.normalize(net(gallery)).t()).argmax(dim=1)
    net.train()
    return (names[near] == labels).float().mean().item()


def main():
    torch.manual_seed(85)
    people = 1.2 * torch.randn(12, 10)
    net = EmbeddingNet(10, 4)
    criterion = AngularMargin(12, 4)  # bug: TA432
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for step in range(1, 201):
        x, labels = faces(48, people)
        loss = criterion(net(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f} retrieval {retrieval(net, people):.3f}")


main()
