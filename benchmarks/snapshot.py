"""What the digests of a model of 100 million parameters cost, against one read of its memory.

`OMP_NUM_THREADS=1 python benchmarks/snapshot.py [--rounds 7] [--json FILE]`; see `benchmarks/README.md`. Every round runs all variants, one after
the other, in an order that turns; a ratio is the median over the rounds of the time of a variant over that of the read
in the same round. The read is `torch.sum` of every tensor. Time is that of the processor in this thread, which others on the
machine disturb least: it needs the one thread.
"""

import argparse
import hashlib
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ta_runtime.measure.digests import copied
from ta_runtime.measure.distribution import measure
from ta_runtime.measure.norms import exact_norm
from ta_runtime.snapshot import Snapshots
from ta_runtime.snapshot.contents import Contents

READ = "one read"
TEN = 10_000_000


def model() -> nn.Module:
    """The weights of a transformer of 12 layers: 124 million parameters in 148 tensors."""
    sizes = [(768, 2304), (768, 768), (768, 3072), (3072, 768)]
    layers = [
        nn.ModuleList([nn.LayerNorm(768), *(nn.Linear(*size) for size in sizes), nn.LayerNorm(768)])
        for _ in range(12)
    ]
    return nn.ModuleList([nn.Embedding(50257, 768), nn.Embedding(1024, 768), *layers, nn.LayerNorm(768)])


def read(tensors: list[Tensor]) -> None:
    for tensor in tensors:
        tensor.sum()


def contents(tensors: list[Tensor], **options: bool) -> None:
    found = Contents(**options)
    for tensor in tensors:
        found.add(tensor, {})
    found.deliver()


def norms(tensors: list[Tensor]) -> None:
    """Without digests, and as if float32 could not be trusted with rows either."""
    for tensor in tensors:
        exact_norm(tensor.view(-1))


def hash_tensor(tensors: list[Tensor]) -> None:
    """Blind for the order of elements, for shapes and dtypes."""
    for tensor in tensors:
        torch.hash_tensor(tensor)


def md5(tensors: list[Tensor]) -> None:
    """As fkat's Introspection does."""
    for tensor in tensors:
        hashlib.md5(copied(tensor.view(-1)))


def variants(tensors: list[Tensor]) -> dict[str, Callable[[], None]]:
    return {
        READ: lambda: read(tensors),
        "digests and blocks": lambda: contents(tensors, norms=False),
        "the same and norms": lambda: contents(tensors),
        "norms in float64 alone": lambda: norms(tensors),
        "as on a device": lambda: contents(tensors, weighted=True, norms=False),
        "torch.hash_tensor": lambda: hash_tensor(tensors),
        "md5 of a copy": lambda: md5(tensors),
    }


def ratios(runs: dict[str, Callable[[], None]], rounds: int) -> dict[str, tuple[float, float, float]]:
    """Of each variant the median, lowest and highest ratio to the first."""
    names = list(runs)
    found: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds + 1):
        seconds = {}
        for name in names[number % len(names) :] + names[: number % len(names)]:
            started = time.thread_time()
            runs[name]()
            seconds[name] = time.thread_time() - started
        for name in names:
            if number:  # the first round warms up
                found[name].append(seconds[name] / seconds[names[0]])
    return {name: (statistics.median(each), min(each), max(each)) for name, each in found.items()}


def of_statistics(rounds: int) -> float:
    """Seconds for all statistics of 10 million elements."""
    from ta_runtime.runs.schema import STATISTICS

    values = torch.randn(TEN)
    found = []
    for _ in range(rounds):
        started = time.thread_time()
        measure(values, STATISTICS)
        found.append(time.thread_time() - started)
    return statistics.median(found)


def of_steps(rounds: int) -> tuple[float, float]:
    """Microseconds that a step without a snapshot, and milliseconds that one with it, takes longer: an MLP of 100 tensors."""
    network = nn.Sequential(*(layer for _ in range(50) for layer in (nn.Linear(32, 32), nn.ReLU())))
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
    inputs = torch.randn(8, 32)

    def step() -> float:
        started = time.thread_time()
        optimizer.zero_grad()
        network(inputs).sum().backward()
        optimizer.step()
        return time.thread_time() - started

    plain, idle, taken = [], [], []
    for _ in range(rounds):
        plain.append(statistics.median(step() for _ in range(20)))
        with tempfile.TemporaryDirectory() as folder:
            with Snapshots(Path(folder) / "never", schedule="never"):
                idle.append(statistics.median(step() for _ in range(20)))
            with Snapshots(Path(folder) / "always", schedule="every 1"):
                taken.append(statistics.median(step() for _ in range(5)))
    base = statistics.median(plain)
    return (statistics.median(idle) - base) * 1e6, (statistics.median(taken) - base) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    tensors = [parameter.detach() for parameter in model().parameters()]
    count = sum(tensor.numel() for tensor in tensors)
    found = ratios(variants(tensors), arguments.rounds)
    print(
        f"{count / 1e6:.0f} million parameters in {len(tensors)} tensors, {torch.get_num_threads()} threads"
    )
    for name, (median, low, high) in found.items():
        print(f"  {name:20} {median:6.2f}  [{low:.2f} to {high:.2f}]")
    seconds = of_statistics(3)
    idle, taken = of_steps(arguments.rounds)
    print(f"all statistics of {TEN} elements: {seconds:.2f} s")
    print(f"a step of 100 tensors: {idle:+.0f} us without a snapshot, {taken:+.1f} ms with all kinds")
    if arguments.json is not None:
        result: dict[str, Any] = {"parameters": count, "ratios": found, "statistics": seconds}
        arguments.json.write_text(json.dumps(result | {"idle_us": idle, "taken_ms": taken}, indent=2))


if __name__ == "__main__":
    main()
