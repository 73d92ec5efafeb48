"""What watching costs a run of a few seconds, its start included: `python benchmarks/short_runs.py [--rounds 5] [--write]`.

Each training is a process of its own, plain and under `ta-runtime run` in turns, on one thread. The figure is the CPU time of the process
(user and system, children included) over that of the plain run beside it.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from sections import write_section
from tables import aligned

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
MAKER = "benchmarks/short_runs.py"
HEAD = """
import torch
from torch import nn
torch.manual_seed(0)
"""
LOOP = """
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(STEPS):
    x, y = torch.randn(64, *SHAPE), torch.randint(0, 10, (64,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
"""
RECURRENT = """
class Last(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(32, 64, batch_first=True)
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


model = Last()
"""
TRAININGS = {
    "MLP": (
        "model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))",
        "(64,)",
        2500,
    ),
    "LSTM": (RECURRENT, "(24, 32)", 500),
    "CNN": (
        """
layers = nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU()
model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
""",
        "(3, 16, 16)",
        350,
    ),
}
"""The model, the shape of an input, and how many steps take three to seven seconds."""


def main() -> int:
    """Measure and print, or put the table into the document; returns the exit status."""
    parser = argparse.ArgumentParser(description="Time short runs, plain and watched.")
    parser.add_argument("--rounds", type=int, default=5, help="pairs of runs (default: 5)")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    options = parser.parse_args()
    rows: list[tuple[str, ...]] = [("training", "steps", "plain, CPU s", "watched over plain", "least-most")]
    for name, (model, shape, steps) in TRAININGS.items():
        code = HEAD + model + LOOP.replace("SHAPE", shape).replace("STEPS", str(steps))
        pairs = [
            (_seconds(code, ()), _seconds(code, ("-m", "ta_runtime", "run"))) for _ in range(options.rounds)
        ]
        ratios = sorted(watched / plain for plain, watched in pairs)
        plain = statistics.median(plain for plain, _ in pairs)
        rows.append(
            (
                name,
                f"{steps:,}",
                f"{plain:.1f}",
                f"{statistics.median(ratios):.2f}",
                f"{ratios[0]:.2f}-{ratios[-1]:.2f}",
            )
        )
    table = "\n".join(aligned(rows)) + "\n"
    print(table)
    if options.write:
        write_section(DOCUMENT, MAKER, f"\n{table}\n")
    return 0


def _seconds(code: str, before: tuple[str, ...]) -> float:
    """The CPU time of one run of this code."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text(code, encoding="utf-8")
        start = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, *before, "train.py"],
            cwd=folder, check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime


if __name__ == "__main__":
    raise SystemExit(main())
