"""What watching a training step costs: ta-runtime and its peers, in interleaved rounds of one process.

`python benchmarks/runtime.py [--model mlp] [--rounds 20] [--steps N] [--count-only] [--json FILE]`, `--budget` for whole runs
under the default budget, and `--device cuda` for a GPU; see `benchmarks/README.md`.
"""

import argparse
import datetime
import gc
import importlib.metadata
import json
import os
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Self
from unittest import mock

import torch
from tables import aligned, processor
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from ta_runtime.audit.schedule import Look
from ta_runtime.audit.session import Session
from ta_runtime.probes import work
from ta_runtime.settings import resolve

PLAIN = "plain"
_WARM_UP = 3  # steps before the first round: the optimizer makes its state, a session sees its first step

# -- the models -----------------------------------------------------------------------------------------------


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.into = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        shape = (batch, length, 3, self.heads, width // self.heads)
        query, key, value = self.into(x).view(shape).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        result: Tensor = self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return result


class Block(nn.Module):
    """A transformer block, normalised before each part."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.before_attention = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.before_mlp = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.before_attention(x))
        result: Tensor = x + self.mlp(self.before_mlp(x))
        return result


class GPT(nn.Module):
    """A language model of 4 layers."""

    def __init__(self, words: int = 1024, width: int = 256, length: int = 128) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads=4) for _ in range(4)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        result: Tensor = self.head(self.norm(self.blocks(x)))
        return result


class Residual(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, given: int, out: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.Conv2d(given, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU()
        )
        self.second = nn.Sequential(nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out))
        same = given == out and stride == 1
        self.shortcut = nn.Identity() if same else nn.Conv2d(given, out, 1, stride, bias=False)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.relu(self.second(self.first(x)) + self.shortcut(x))
        return result


def cnn() -> nn.Module:
    """A small residual network with 13 rectifiers."""
    sizes = [(16, 16, 1), (16, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1)]
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        *(Residual(*size) for size in sizes),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip


def mlp() -> nn.Module:
    """102 tiny parameters: the worst case for what is paid per tensor."""
    hidden = [layer for _ in range(50) for layer in (nn.Linear(32, 32), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(32, 10))


class Language(nn.Module):
    """A recurrent language model of 120,000 parameters."""

    def __init__(self, words: int = 256, width: int = 96) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, words)

    def forward(self, ids: Tensor) -> Tensor:
        result: Tensor = self.head(self.lstm(self.words(ids))[0])
        return result


@dataclass
class Training:
    """A model with its optimizer and the one batch it is trained on."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    inputs: Tensor
    targets: Tensor

    def backward(self) -> None:
        self.optimizer.zero_grad()
        scores = self.model(self.inputs)
        functional.cross_entropy(scores.flatten(0, -2), self.targets.flatten()).backward()  # type: ignore[no-untyped-call]

    def step(self) -> None:
        self.backward()
        self.optimizer.step()


MODELS = ("gpt", "cnn", "mlp")
BUDGETED = (*MODELS, "lstm", "linear")
STEPS = {"gpt": 2, "cnn": 3, "mlp": 10}  # of one turn, unless the command line says otherwise


def training(name: str, device: str = "cpu") -> Training:
    """A new training of a model on a device, always the same."""
    torch.manual_seed(0)
    with torch.device(device):
        return _training(name)


def _training(name: str) -> Training:
    made: tuple[nn.Module, Tensor, Tensor]
    if name == "gpt":
        ids = torch.randint(0, 1024, (8, 129))
        made = GPT(), ids[:, :-1].contiguous(), ids[:, 1:].contiguous()
    elif name == "cnn":
        made = cnn(), torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,))
    elif name == "lstm":
        ids = torch.randint(0, 256, (16, 33))
        made = Language(), ids[:, :-1].contiguous(), ids[:, 1:].contiguous()
    elif name == "linear":
        made = nn.Linear(1, 1), torch.randn(4, 1), torch.zeros(4, dtype=torch.long)
        return Training(made[0], torch.optim.SGD(made[0].parameters(), lr=1e-4), *made[1:])
    else:
        made = mlp(), torch.randn(32, 32), torch.randint(0, 10, (32,))
    model, inputs, targets = made
    return Training(model, torch.optim.AdamW(model.parameters(), lr=1e-4), inputs, targets)


# -- the variants ---------------------------------------------------------------------------------------------


def _nothing() -> None:
    pass


@dataclass
class Watched:
    """A training under one tool. `start` and `stop` stand around each turn, as hooks may be those of the process."""

    step: Callable[[], None]
    start: Callable[[], None] = _nothing
    stop: Callable[[], None] = _nothing
    verify: Callable[[], None] = _nothing
    """Raises if the tool did not do what is being timed."""


def plain(watched: Training) -> Watched:
    return Watched(watched.step)


def ours(watched: Training, every_n_steps: int, gradients_every_n_steps: int) -> Watched:
    settings = resolve(every_n_steps=every_n_steps, gradients_every_n_steps=gradients_every_n_steps)
    session = Session(settings, models=[watched.model], optimizers=[watched.optimizer])

    def verify() -> None:
        broken = [incident.suspicion.message for incident in session.incidents if incident.rule == "TA000"]
        if broken or session.not_seen:
            raise Missing(f"ta-runtime: {'; '.join([*broken, *session.not_seen])}")

    return Watched(watched.step, session.start, session.stop, verify)


def torch_audit(watched: Training, every_n_steps: int) -> Watched:
    autopatch = import_module("torch_audit").autopatch
    start_step = int(
        every_n_steps > 1
    )  # it audits each step that is a multiple: between audits from the beginning
    auditor = autopatch(
        watched.model, optimizer=watched.optimizer, every_n_steps=every_n_steps, start_step=start_step
    )
    # it keeps every finding of every step
    return Watched(watched.step, stop=lambda: auditor.runner.findings.clear())


def module_monitor(watched: Training) -> Watched:
    """Means and standard deviations of activations, norms of parameters and gradients, as in its README."""
    monitor: Any = import_module("torch_module_monitor").ModuleMonitor(monitor_step_fn=lambda step: True)
    monitor.set_module(watched.model)
    monitor.add_activation_metric("mean", lambda tensor: tensor.mean())
    monitor.add_activation_metric("std", lambda tensor: tensor.std())
    monitor.add_parameter_metric("norm", lambda tensor: tensor.norm())
    monitor.add_gradient_metric("norm", lambda tensor: tensor.norm())
    count = 0

    def step() -> None:
        nonlocal count
        monitor.begin_step(count)
        watched.backward()
        monitor.monitor_parameters()
        monitor.monitor_gradients()
        watched.optimizer.step()
        monitor.end_step()
        monitor.storage.log_dict.pop(count - 1, None)  # it keeps every figure of every step
        count += 1

    return Watched(step)


def anomaly(watched: Training) -> Watched:
    def step() -> None:
        with torch.autograd.detect_anomaly(check_nan=True):
            watched.backward()
        watched.optimizer.step()

    return Watched(step)


VARIANTS: dict[str, Callable[[Training], Watched]] = {
    PLAIN: plain,
    "ta-runtime, idle": partial(ours, every_n_steps=0, gradients_every_n_steps=0),
    "ta-runtime, gradients": partial(ours, every_n_steps=0, gradients_every_n_steps=1),
    "ta-runtime, full audit": partial(ours, every_n_steps=1, gradients_every_n_steps=1),
    "torch-audit, every step": partial(torch_audit, every_n_steps=1),
    "torch-audit, between audits": partial(torch_audit, every_n_steps=1_000_000),
    "torch-module-monitor": module_monitor,
    "detect_anomaly": anomaly,
}


class Missing(Exception):
    """A tool is not here, or does not do what is to be measured."""


# -- counting -------------------------------------------------------------------------------------------------


class Seeing(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode that sees the tool's own work too, which hides itself from modes."""

    def __enter__(self) -> Self:
        self._shown = mock.patch.object(work, "_count", return_value=0)
        self._shown.start()
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self._shown.stop()


class Counted(Seeing):  # type: ignore[no-untyped-call]
    """Counts the operations that reach the device, and those that wait for it: `_local_scalar_dense`, as `item()`."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: dict[str, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(func)
        self.operations[name] = self.operations.get(name, 0) + 1
        return func(*args, **(kwargs or {}))

    @property
    def total(self) -> int:
        return sum(self.operations.values())

    @property
    def syncs(self) -> int:
        return self.operations.get("aten._local_scalar_dense.default", 0)


def counted(watched: Watched) -> Counted:
    """The operations of one step, after some others."""
    watched.start()
    try:
        for _ in range(_WARM_UP):
            watched.step()
        counts = Counted()
        with counts:
            watched.step()
    finally:
        watched.stop()
    watched.verify()
    return counts


# -- timing ---------------------------------------------------------------------------------------------------


@dataclass
class Figures:
    """One variant on one model. Each round gives one median of its steps, in seconds by the clock and of the CPU."""

    operations: int = 0  # added to a step
    syncs: int = 0
    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    """All that was measured: `models` by name, in each the figures by variant."""

    date: str
    machine: str
    load_before: float  # runnable processes, averaged over a minute
    versions: dict[str, str]
    skipped: list[str]
    models: dict[str, dict[str, Figures]]


def main() -> int:
    """Measure and print the tables; returns the exit status."""
    arguments = _arguments()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    if arguments.budget:
        print(
            *budgeted(
                arguments.model or list(BUDGETED),
                arguments.rounds,
                arguments.steps or 2000,
                arguments.device,
            ),
            sep="\n",
        )
        return 0
    try:
        report = measure(
            arguments.model or list(MODELS),
            0 if arguments.count_only else arguments.rounds,
            arguments.steps,
            arguments.device,
        )
    except Missing as error:
        print(f"runtime.py: error: {error}", file=sys.stderr)
        return 2
    print("\n".join(rendered(report)))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(asdict(report), indent=2) + "\n", encoding="utf-8")
    return 0


def measure(models: list[str], rounds: int, steps: int | None, device: str) -> Report:
    """Count and time every variant on some models; one whose package is not installed is left out.

    Raises:
        Missing: a tool does not do what is to be measured.
    """
    load, *_ = os.getloadavg()
    versions = {"torch": torch.__version__, "ta-runtime": importlib.metadata.version("ta-lint")}
    skipped = []
    for package in ("torch-audit", "torch-module-monitor"):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            skipped.append(package)
    variants = {name: make for name, make in VARIANTS.items() if not name.startswith(tuple(skipped))}
    return Report(
        date=datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        machine=f"{_named(device)}, {processor()}, {platform.system()}, Python {platform.python_version()}",
        load_before=load,
        versions=versions,
        skipped=skipped,
        models={model: measured(model, variants, rounds, steps or STEPS[model], device) for model in models},
    )


def _named(device: str) -> str:
    return "1 thread" if device == "cpu" else torch.cuda.get_device_name(device)


def measured(
    model: str,
    variants: dict[str, Callable[[Training], Watched]],
    rounds: int,
    steps: int,
    device: str = "cpu",
) -> dict[str, Figures]:
    """The figures of each variant on a model: operations of a step, and times in rounds in which all take turns."""
    figures: dict[str, Figures] = {}
    for name, make in variants.items():
        counts = counted(make(training(model, device)))
        figures[name] = Figures(counts.total, counts.syncs)
    for name in reversed(variants):
        figures[name].operations -= figures[PLAIN].operations
        figures[name].syncs -= figures[PLAIN].syncs
    watched = {name: make(training(model, device)) for name, make in variants.items()} if rounds else {}
    names = list(watched)
    for number in range(rounds):
        print(
            f"{Path(sys.argv[0]).name}: {model}, round {number + 1} of {rounds}", file=sys.stderr, flush=True
        )
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            wall, cpu = _turn(watched[name], steps, warm_up=1 if number else _WARM_UP)
            figures[name].wall_s.append(wall)
            figures[name].cpu_s.append(cpu)
        gc.collect()
    for tool in watched.values():
        tool.verify()
    return figures


def synchronize() -> None:
    """Wait for the GPU, if one is in use."""
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()


def _turn(watched: Watched, steps: int, warm_up: int) -> tuple[float, float]:
    """Median seconds of a step, by the clock and of the CPU."""
    wall = []
    cpu = []
    watched.start()
    try:
        for _ in range(warm_up):
            watched.step()
        synchronize()
        for _ in range(steps):
            started, started_cpu = time.perf_counter(), time.process_time()
            watched.step()
            synchronize()
            cpu.append(time.process_time() - started_cpu)
            wall.append(time.perf_counter() - started)
    finally:
        watched.stop()
    return statistics.median(wall), statistics.median(cpu)


# -- whole runs under the default budget ----------------------------------------------------------------------


@dataclass
class Spent:
    """Runs of so many steps, each beside one that nothing watched: the ratio of their times, and what was seen."""

    steps: int
    ratios: list[float] = field(default_factory=list)
    full: list[int] = field(default_factory=list)
    read: list[int] = field(default_factory=list)


def spent(model: str, rounds: int, steps: int, device: str) -> Spent:
    """What the default budget costs runs of a model, in turns within one process: CPU time, and by the clock on a GPU."""
    figures = Spent(steps)
    clock = time.process_time if device == "cpu" else time.perf_counter
    for number in range(rounds):
        seconds = {}
        for watches in (True, False) if number % 2 else (False, True):
            watched = training(model, device)
            session = Session(resolve(), models=[watched.model]) if watches else None
            for _ in range(_WARM_UP if session is None else 0):
                watched.step()
            synchronize()
            started = clock()
            if session is not None:
                session.start()
            for _ in range(steps):
                watched.step()
            if session is not None:
                session.stop()
                figures.full.append(session.looked[Look.FULL])
                figures.read.append(session.looked[Look.GRADIENTS])
            synchronize()
            seconds[watches] = clock() - started
        figures.ratios.append(seconds[True] / seconds[False])
        print(
            f"{Path(sys.argv[0]).name}: {model}, round {number + 1} of {rounds}", file=sys.stderr, flush=True
        )
    return figures


def budgeted(models: list[str], rounds: int, steps: int, device: str) -> Iterator[str]:
    """The table of such runs as Markdown, line by line."""
    ratio_of = "CPU ratio" if device == "cpu" else "ratio"
    rows: list[tuple[str, ...]] = [("default budget", "steps", ratio_of, "in full", "gradients read")]
    for model in models:
        found = spent(model, rounds, steps, device)
        ratio = middle(found.ratios, [1.0] * rounds)
        seen = [f"{statistics.median(counts):.0f}" for counts in (found.full, found.read)]
        rows.append((model, str(steps), ratio, *seen))
    yield from aligned(rows)


# -- the report -----------------------------------------------------------------------------------------------


def rendered(report: Report) -> Iterator[str]:
    """The report as Markdown that reads as plain text, line by line."""
    yield f"Date:     {report.date}"
    yield f"Machine:  {report.machine}; load before: {report.load_before:.1f}"
    yield f"Versions: {', '.join(f'{name} {version}' for name, version in report.versions.items())}"
    for package in report.skipped:
        yield f"Left out: {package} is not installed"
    timed = False
    for model, figures in report.models.items():
        yield ""
        yield from aligned(_rows(model, figures))
        timed = bool(figures[PLAIN].wall_s)
    if timed:
        yield ""
        yield "Ratios to plain, taken within a round: the median of the rounds (the middle half of them). Operations and"
        yield "host syncs are those added to a step, counted exactly."


def _rows(model: str, figures: dict[str, Figures]) -> list[tuple[str, ...]]:
    base = figures[PLAIN]
    header = [model, *(["ms", "ratio", "CPU ratio"] if base.wall_s else []), "+ ops", "+ syncs"]
    rows = [tuple(header)]
    for name, entry in figures.items():
        cells = [name]
        if base.wall_s:
            cells += [
                f"{statistics.median(entry.wall_s) * 1e3:.2f}",
                middle(entry.wall_s, base.wall_s),
                middle(entry.cpu_s, base.cpu_s),
            ]
        rows.append((*cells, str(entry.operations), str(entry.syncs)))
    return rows


def middle(values: list[float], base: list[float]) -> str:
    """The median of the paired ratios, and their quartiles."""
    ratios = sorted(value / plain for value, plain in zip(values, base, strict=True))
    low, high = ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4]
    return f"{statistics.median(ratios):.3f} ({low:.3f}-{high:.3f})"


def _arguments() -> argparse.Namespace:
    parser = command_line("Time ta-runtime beside its peers, and count what each adds to a step.", BUDGETED)
    parser.add_argument(
        "--budget",
        action="store_true",
        help="time whole runs of 2,000 steps, or of --steps, under the default budget",
    )
    parser.add_argument("--device", default="cpu", help="where to train, such as cuda (default: cpu)")
    return checked(parser)


def command_line(description: str, models: tuple[str, ...] = MODELS) -> argparse.ArgumentParser:
    """What every benchmark of a training step can be told."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", choices=models, action="append", help="may be repeated (default: all)")
    parser.add_argument("--rounds", type=int, default=20, metavar="N", help="(default: 20)")
    parser.add_argument(
        "--steps", type=int, metavar="N", help="of each variant in a round (default: 2 to 10 by model)"
    )
    parser.add_argument("--count-only", action="store_true", help="what is counted, no times: in seconds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every round to a file as well")
    return parser


def checked(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The command line, read; what is wrong in it ends the process with status 2."""
    arguments = parser.parse_args()
    if arguments.rounds < 1 or (arguments.steps is not None and arguments.steps < 1):
        parser.error("--rounds and --steps are at least 1")
    return arguments


if __name__ == "__main__":
    raise SystemExit(main())
