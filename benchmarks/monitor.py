"""What a monitor costs a training step, beside torch-module-monitor, in interleaved rounds of one process.

`python benchmarks/monitor.py [--model mlp] [--rounds 20] [--steps N] [--count-only] [--json FILE] [--write]`; see
`benchmarks/README.md`. In every step both take means and standard deviations of all activations, and norms of all
parameters and gradients.
"""

import argparse
import datetime
import importlib.metadata
import json
import math
import os
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("KINETO_LOG_LEVEL", "3")  # else the profiler tells whenever it starts and stops

import torch
import torch_module_monitor as peer
from runtime import (
    MODELS,
    PLAIN,
    STEPS,
    Figures,
    Missing,
    Training,
    Watched,
    checked,
    command_line,
    measured,
    middle,
    plain,
    training,
)
from sections import write_section
from tables import aligned, processor
from torch.profiler import ProfilerActivity, profile

from ta_runtime import monitor as ours

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
MAKER = "benchmarks/monitor.py"
BAR = 1 / 3
"""Of what the peer adds to a step, what ours may."""

LENGTHS = (512, 1024, 2048, 4096)
_HEADS, _WIDTH = 4, 64

PEER, FUNCTIONS, NAMES = (
    "torch-module-monitor",
    "ta-runtime, the same functions",
    "ta-runtime, named statistics",
)

# -- the variants ---------------------------------------------------------------------------------------------


def monitored(watched: Training, monitor: Any, named: bool) -> Watched:
    """A training under a monitor of either package, used as their READMEs have it."""
    monitor.set_module(watched.model)
    monitor.add_activation_metric("mean", "mean" if named else lambda x: x.mean())
    monitor.add_activation_metric("std", "std" if named else lambda x: x.std())
    monitor.add_parameter_metric("norm", "norm" if named else lambda x: x.norm())
    monitor.add_gradient_metric("norm", "norm" if named else lambda x: x.norm())
    count = 0
    metrics: dict[str, float] = {}

    def step() -> None:
        nonlocal count, metrics
        monitor.begin_step(count)
        watched.backward()
        monitor.monitor_parameters()
        monitor.monitor_gradients()
        watched.optimizer.step()
        monitor.end_step()
        metrics = monitor.get_step_metrics()
        if isinstance(monitor, peer.ModuleMonitor):
            monitor.storage.log_dict.pop(count - 1, None)  # it keeps every figure of every step
        count += 1

    def verify() -> None:
        """As many figures as there are to take, and those that a parameter has now."""
        modules, parameters = len(list(watched.model.modules())), dict(watched.model.named_parameters())
        if len(metrics) != 2 * modules + 2 * len(parameters):
            raise Missing(f"{type(monitor).__module__}: {len(metrics)} figures of a step")
        for name, parameter in parameters.items():
            assert parameter.grad is not None
            if not math.isclose(
                metrics[f"gradient/{name}/norm"], parameter.grad.norm().item(), rel_tol=1e-4, abs_tol=1e-9
            ):
                raise Missing(f"{type(monitor).__module__}: the norm of the gradient of {name} is wrong")

    return Watched(step, verify=verify)


def _peer(watched: Training) -> Watched:
    return monitored(watched, peer.ModuleMonitor(monitor_step_fn=lambda step: True), named=False)


def _ours(watched: Training, named: bool) -> Watched:
    return monitored(watched, ours.ModuleMonitor(monitor_step_fn=lambda step: True), named)


VARIANTS: dict[str, Callable[[Training], Watched]] = {
    PLAIN: plain,
    PEER: _peer,
    FUNCTIONS: partial(_ours, named=False),
    NAMES: partial(_ours, named=True),
}


# -- measuring ------------------------------------------------------------------------------------------------


@dataclass
class Attention:
    """One attention, monitored: the peak of memory in bytes beside what was there before, and seconds."""

    length: int
    peer_bytes: int
    ours_bytes: int
    peer_s: float
    ours_s: float


@dataclass
class Report:
    """All that was measured: of each model the figures by variant, and its peak of memory in bytes."""

    date: str
    machine: str
    load_before: float  # runnable processes, averaged over a minute
    versions: dict[str, str]
    models: dict[str, dict[str, Figures]]
    peaks: dict[str, dict[str, int]]
    attention: list[Attention]

    @property
    def is_missed(self) -> bool:
        return any(
            figures[PLAIN].cpu_s and share(figures, name) > BAR
            for figures in self.models.values()
            for name in (FUNCTIONS, NAMES)
        )


def measure(models: list[str], rounds: int, steps: int | None) -> Report:
    """Count, weigh and time every variant on some models.

    Raises:
        Missing: a monitor does not measure what is to be measured.
    """
    load, *_ = os.getloadavg()
    return Report(
        date=datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        machine=f"1 thread, {processor()}, {platform.system()}, Python {platform.python_version()}",
        load_before=load,
        versions={
            "torch": torch.__version__,
            "ta-runtime": importlib.metadata.version("ta-lint"),
            PEER: importlib.metadata.version(PEER),
        },
        models={model: measured(model, VARIANTS, rounds, steps or STEPS[model]) for model in models},
        peaks={model: {name: _peak_of(make(training(model))) for name, make in VARIANTS.items()} for model in models},
        attention=[_attention(length) for length in LENGTHS],
    )  # fmt: skip


def share(figures: dict[str, Figures], name: str) -> float:
    """What a variant adds to a step, as a part of what the peer does."""

    def added(variant: str) -> float:
        pairs = zip(figures[variant].cpu_s, figures[PLAIN].cpu_s, strict=True)
        return statistics.median(value / base for value, base in pairs) - 1

    return added(name) / added(PEER)


def _peak_of(watched: Watched) -> int:
    watched.start()
    try:
        for _ in range(3):
            watched.step()
        return peak(watched.step)
    finally:
        watched.stop()


def peak(work: Callable[[], object]) -> int:
    """The most bytes that torch's allocator had given out during some work, above what it had before."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        work()
    assert profiled.profiler is not None
    events = [
        event for event in profiled.profiler.kineto_results.events() if event.name() == "[memory]"
    ]  # not public: without it there is no order of allocations
    now = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()
        most = max(most, now)
    return most


def _attention(length: int) -> Attention:
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 1, _HEADS, length, _WIDTH)

    def work(package: Any) -> Callable[[], None]:
        monitor = package.ModuleMonitor(monitor_step_fn=lambda step: True)
        monitor.set_module(torch.nn.Identity())

        def attend() -> None:
            monitor.begin_step(0)
            package.monitor_scaled_dot_product_attention(
                monitor, "attention", query, key, value, is_causal=True
            )
            monitor.end_step()

        return attend

    theirs, own = work(peer), work(ours)
    seconds: dict[Callable[[], None], list[float]] = {theirs: [], own: []}
    for _ in range(3):
        for run, times in seconds.items():
            started = time.perf_counter()
            run()
            times.append(time.perf_counter() - started)
    return Attention(length, peak(theirs), peak(own), min(seconds[theirs]), min(seconds[own]))


# -- the report -----------------------------------------------------------------------------------------------


def rendered(report: Report) -> Iterator[str]:
    """The report as Markdown that reads as plain text, line by line."""
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    yield f"Made by `python benchmarks/monitor.py` on {report.date[:10]}: {report.machine},"
    yield f"a load of {report.load_before:.1f} before; {versions}."
    timed = False
    for model, figures in report.models.items():
        timed = bool(figures[PLAIN].cpu_s)
        yield ""
        yield from aligned(_rows(model, figures, report.peaks[model]))
    yield ""
    if timed:
        yield "Times are CPU times. Ratios are to plain in the same round: the median of the rounds (and their middle half). `to the"
        yield f"peer` is the time added to a step over the time that torch-module-monitor adds (bar {BAR:.2f}). Added operations and host"
        yield "syncs are counted exactly; the peak is that of torch's allocator in a step, above its level before the step."
        yield ""
    yield f"One causal attention of {_HEADS} heads, {_WIDTH} wide, monitored: the peak of memory, and time."
    yield ""
    header = ("tokens", "peer, MB", "ours, MB", "of the peer", "peer, ms", "ours, ms")
    yield from aligned([header, *(_attention_row(entry) for entry in report.attention)])


def _rows(model: str, figures: dict[str, Figures], peaks: dict[str, int]) -> list[tuple[str, ...]]:
    base = figures[PLAIN]
    timed = bool(base.cpu_s)
    header = [
        model.upper(),
        *(["ms", "ratio", "to the peer"] if timed else []),
        "+ ops",
        "+ syncs",
        "peak, MB",
    ]
    rows = [tuple(header)]
    for name, entry in figures.items():
        cells = [name]
        if timed:
            cells.append(f"{statistics.median(entry.cpu_s) * 1e3:.2f}")
            cells.append(middle(entry.cpu_s, base.cpu_s))
            cells.append(f"{share(figures, name):.2f}" if name in (FUNCTIONS, NAMES) else "")
        rows.append((*cells, str(entry.operations), str(entry.syncs), f"{peaks[name] / 1e6:.1f}"))
    return rows


def _attention_row(entry: Attention) -> tuple[str, ...]:
    return (
        str(entry.length),
        f"{entry.peer_bytes / 1e6:.1f}",
        f"{entry.ours_bytes / 1e6:.1f}",
        f"{entry.ours_bytes / entry.peer_bytes:.2f}",
        f"{entry.peer_s * 1e3:.0f}",
        f"{entry.ours_s * 1e3:.0f}",
    )


def main() -> int:
    """Measure and print the tables; returns the exit status: 1 if the bar is missed."""
    arguments = _arguments()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    try:
        report = measure(
            arguments.model or list(MODELS), 0 if arguments.count_only else arguments.rounds, arguments.steps
        )
    except Missing as error:
        print(f"monitor.py: error: {error}", file=sys.stderr)
        return 2
    text = "\n".join(rendered(report))
    print(text)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(asdict(report), indent=2) + "\n", encoding="utf-8")
    if arguments.write:
        write_section(DOCUMENT, MAKER, f"\n{text}\n")
    return 1 if report.is_missed else 0


def _arguments() -> argparse.Namespace:
    parser = command_line("Time our monitor beside torch-module-monitor, and count what each adds to a step.")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/performance.md")
    arguments = checked(parser)
    if arguments.write and (arguments.model or arguments.count_only):
        parser.error("--write is of all models, with times")
    return arguments


if __name__ == "__main__":
    raise SystemExit(main())
