"""Classifies points on two spirals. The linter suspects four lines; a run says what of it is true.

    ta-runtime run --lint examples/verdicts.py

A comment says what the linter says of its line, and the verdict that it must get.
"""

import sys
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

CACHE = Path(tempfile.gettempdir()) / f"spirals-{torch.__version__}.pt"


def spirals(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    turns = torch.rand(count, 1) * 9 + 1
    labels = torch.randint(2, (count,))
    angle = turns + labels[:, None] * torch.pi
    points = torch.cat((angle.cos(), angle.sin()), dim=1) * turns / 10
    return points + 0.02 * torch.randn(count, 2), labels


def cached() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.load(CACHE, weights_only=False)  # static: TA700  # refuted: TA700


def evaluate(model: nn.Module, points: torch.Tensor, labels: torch.Tensor) -> float:
    model.eval()  # static: TA611  # confirmed: TA611
    with torch.no_grad():
        return (model(points).argmax(dim=1) == labels).float().mean().item()


def distil(student: nn.Module, points: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    targets = scores.argmax(dim=1)
    return F.cross_entropy(student(points).softmax(dim=1), targets)  # static: TA406  # unobserved: TA406


def train(model: nn.Module, epochs: int) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    points, labels = cached()
    for epoch in range(epochs):
        total = 0.0
        for batch in torch.randperm(len(points)).split(64):
            loss = F.cross_entropy(model(points[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss  # static: TA206  # confirmed: TA206
        accuracy = evaluate(model, points, labels)
        print(f"epoch {epoch}: loss {total * 64 / len(points):.3f}, accuracy {accuracy:.3f}")


def main() -> None:
    torch.manual_seed(0)
    torch.save(spirals(2048), CACHE)
    model = nn.Sequential(
        nn.Linear(2, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)
    )
    train(model, epochs=8)
    if "--distil" in sys.argv:
        distil(nn.Linear(2, 2), model, spirals(64)[0])


if __name__ == "__main__":
    main()
