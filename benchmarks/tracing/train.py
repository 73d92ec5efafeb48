"""The training that is traced: a small convolutional network on synthetic images, two epochs of 40 steps with an evaluation.

`python train.py [--seed N]` prints, as the last line of JSON, the seconds of each epoch by the clock and of the CPU.
"""

import argparse
import json
import time

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, STEPS, BATCH = 2, 40, 32


class Net(nn.Module):
    """Two convolutions, a dropout and two linear layers over images of 14 by 14."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3)
        self.conv2 = nn.Conv2d(8, 16, 3)
        self.dropout = nn.Dropout(0.25)
        self.fc1 = nn.Linear(16 * 5 * 5, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, images: Tensor) -> Tensor:
        x = F.relu(self.conv1(images))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(self.dropout(x.flatten(1))))
        return F.log_softmax(self.fc2(x), dim=1)


def train(
    model: nn.Module, loader: DataLoader[tuple[Tensor, ...]], optimizer: torch.optim.Optimizer
) -> float:
    """One epoch; returns the last loss."""
    model.train()
    last = 0.0
    for images, labels in loader:
        optimizer.zero_grad()
        loss = F.nll_loss(model(images), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        last = loss.item()
    return last


def evaluate(model: nn.Module, loader: DataLoader[tuple[Tensor, ...]]) -> float:
    """The accuracy."""
    model.eval()
    right = seen = 0
    with torch.no_grad():
        for images, labels in loader:
            right += (model(images).argmax(dim=1) == labels).sum().item()
            seen += len(labels)
    return right / seen


def main() -> None:
    """Train and time it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    torch.manual_seed(parser.parse_args().seed)
    torch.set_num_threads(1)
    images = torch.randn(STEPS * BATCH, 1, 14, 14)
    labels = (images.mean(dim=(1, 2, 3)) * 60 + 5).clamp(0, 9).long()
    training = DataLoader(TensorDataset(images, labels), batch_size=BATCH, shuffle=True)
    validation = DataLoader(TensorDataset(images[:320], labels[:320]), batch_size=BATCH)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    seconds = []
    for epoch in range(EPOCHS):
        clock, cpu = time.perf_counter(), time.process_time()
        loss = train(model, training, optimizer)
        accuracy = evaluate(model, validation)
        seconds.append((time.perf_counter() - clock, time.process_time() - cpu))
        print(f"epoch {epoch}: loss {loss:.4f}, accuracy {accuracy:.3f}")
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
