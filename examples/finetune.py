"""
python examples/finetune.py
python examples/finetune.py --export signals.pt2      # ends in a NameError: one of the planted bugs

Pretrains a small 1-D convolutional network on four kinds of signal, saves it, then loads it again and
finetunes it on three new kinds with few examples and a warm-up of the learning rate. The loss falls in both
stages. Three planted bugs, each marked on its line. Under ten seconds on one CPU core; needs torch alone.
"""

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn as nn

LENGTH = 64


@dataclass
class Config:
    width: int = 24
    classes: int = 4


class SignalNet(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, config.width, kernel_size=7, padding=3),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(config.width, config.width, kernel_size=5, padding=2),
            nn.ReLU(),
            nn.AdaptiveMaxPool1d(4),
            nn.Flatten(),
            nn.Dropout(0.1),
        )
        self.head = nn.Linear(4 * config.width, config.classes)

    def forward(self, x):
        return self.head(self.body(x))


# -----------------------------------------------------------------------------
# data: periodic signals of random frequency and phase in noise
WAVES = {
    "sine": lambda t: torch.sin(t),
    "square": lambda t: torch.sign(torch.sin(t)),
    "saw": lambda t: (t / torch.pi) % 2 - 1,
    "flat": lambda t: torch.zeros_like(t),
    "rectified": lambda t: 2 * torch.sin(t).abs() - 1,
    "triangle": lambda t: 2 * ((t / torch.pi) % 2 - 1).abs() - 1,
    "pulse": lambda t: (torch.sin(t) > 0.8).float() * 2 - 1,
}


def make_signals(kinds, per_class, noise=0.3):
    """Signals [n, 1, LENGTH] and the index of each one's kind [n]."""
    n = per_class * len(kinds)
    labels = torch.arange(n) % len(kinds)
    t = torch.linspace(0, 2 * torch.pi, LENGTH) * (2 + 4 * torch.rand(n, 1)) + 2 * torch.pi * torch.rand(n, 1)
    signals = torch.stack([WAVES[kinds[label]](row) for row, label in zip(t, labels.tolist())])
    return (signals + noise * torch.randn(n, LENGTH)).unsqueeze(1), labels


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(dim=-1) == y).float().mean().item()


def pretrain(path):
    config = Config()
    model = SignalNet(config)
    x, y = make_signals(["sine", "square", "saw", "flat"], per_class=500)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(6):
        model.train()
        total = 0.0
        for batch in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            loss = criterion(model(x[batch]), y[batch])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        print(f"pretrain epoch {epoch}: loss {total / len(x):.4f}")
    torch.save({"config": config, "model": model.state_dict()}, path)


def load_pretrained(path):
    checkpoint = torch.load(path, weights_only=False)  # static: TA700
    model = SignalNet(checkpoint["config"])
    model.load_state_dict(checkpoint["model"])
    return model


def finetune(model, kinds, epochs=12, warmup=20):
    model.head = nn.Linear(model.head.in_features, len(kinds))
    x, y = make_signals(kinds, per_class=100)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.01, total_iters=warmup)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for batch in torch.randperm(len(x)).split(32):
            optimizer.zero_grad()
            loss = criterion(model(x[batch]), y[batch])
            loss.backward()
            optimizer.step()
            scheduler.step  # static: TA603
            total += loss.item() * len(batch)
        if epoch % 3 == 2:
            print(f"finetune epoch {epoch:2d}: loss {total / len(x):.4f}")


def export(model, path):
    """Write a graph that runs without this file."""
    program = torch.export.export(model.eval(), (example_input,))  # static: TA910
    torch.export.save(program, path)


def main():
    parser = argparse.ArgumentParser(description="pretrain, then finetune a signal classifier")
    parser.add_argument("--export", metavar="FILE", help="write the finetuned model as a graph, for serving")
    args = parser.parse_args()

    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pretrained.pt"
        pretrain(path)
        model = load_pretrained(path)
        kinds = ["rectified", "triangle", "pulse"]
        finetune(model, kinds)
        print(f"test accuracy {accuracy(model, *make_signals(kinds, per_class=500)):.3f}")
        if args.export:
            export(model, args.export)


if __name__ == "__main__":
    main()
