"""`ta-runtime preflight` and `enable(preflight=True)`: what is shown and found before the first step, and that it leaves no trace."""

import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import commands
import numpy
import pytest
import score
import test_bitwise
import torch
import torch.nn.functional as F
from commands import Ran
from test_bitwise import Result, outcome, same
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from ta_runtime.audit.audit import Audit
from ta_runtime.preflight.briefing import Briefing
from ta_runtime.preflight.flight import Preflight
from ta_runtime.settings import resolve


class Numbered(Dataset[tuple[Tensor, int]]):
    """Augments by every generator there is, keeps count of what it was asked for, and reads from a file that stays open."""

    def __init__(self, path: Path) -> None:
        path.write_text("".join(f"{number}\n" for number in range(64)))
        self.file = path.open()
        self.own = torch.Generator().manual_seed(3)
        self.asked: list[int] = []

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        self.asked.append(int(self.file.readline() or -1))
        noise = random.random() + numpy.random.rand() + torch.rand(1, generator=self.own)
        return torch.randn(6) + noise, index % 3


def train(model: nn.Module, loaders: tuple[DataLoader[object], ...], epochs: int = 2) -> list[Tensor]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(epochs):
        model.train()
        for inputs, target in loaders[0]:
            loss = F.cross_entropy(model(inputs), target)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            losses.append(loss.detach())
        model.eval()
        with torch.no_grad():
            for loader in loaders[1:]:
                losses += [F.cross_entropy(model(inputs), target) for inputs, target in loader]
    return losses


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))


def loaders(workers: int = 0) -> Result:
    model = network()
    data = TensorDataset(torch.randn(96, 6), torch.randint(0, 3, (96,)))
    first, second = torch.utils.data.random_split(data, [64, 32])
    generator = torch.Generator().manual_seed(5)
    training = DataLoader(
        first, 16, shuffle=True, generator=generator, num_workers=workers, persistent_workers=workers > 0
    )
    losses = train(model, (training, DataLoader(second, 16)))
    return {"losses": losses, "model": model, "generator": generator.get_state()}


def workers() -> Result:
    return loaders(2)


def stateful(folder: Path) -> Result:
    data = Numbered(folder / "lines.txt")
    model = network()
    losses = train(model, (DataLoader(data, 16, shuffle=True), DataLoader(data, 32)))
    return {"losses": losses, "model": model, "asked": data.asked, "own": data.own.get_state()}


class Stream(IterableDataset[tuple[Tensor, int]]):
    """Goes on where it was left."""

    def __init__(self) -> None:
        self.numbers = iter(range(10_000))

    def __iter__(self) -> Iterator[tuple[Tensor, int]]:
        for number in self.numbers:
            if number % 48 == 47:
                return
            yield torch.full((6,), float(number)), number % 3


def stream() -> Result:
    model = network()
    return {"losses": train(model, (DataLoader(Stream(), 16),)), "model": model}


def dictionary() -> Result:
    """Batches by name, attributes that change with each call, and gradients that are there before the first step."""

    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.calls, self.memory = network(), 0, {"last": torch.zeros(3)}

        def forward(self, x: Tensor, y: Tensor | None = None) -> dict[str, Tensor]:
            self.calls += 1
            logits = self.inner(x)
            self.memory["last"] = logits.detach().mean(0)
            return (
                {"logits": logits, "loss": F.cross_entropy(logits, y)}
                if y is not None
                else {"logits": logits}
            )

    model = Counting()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    model(torch.randn(8, 6), torch.randint(0, 3, (8,)))["loss"].backward()
    losses = []
    for _ in range(4):
        loss = model(x=torch.randn(8, 6), y=torch.randint(0, 3, (8,)))["loss"]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return {"losses": losses, "model": model, "calls": model.calls, "memory": model.memory["last"]}


def flown(run: Callable[[], Result]) -> tuple[dict[str, object], list[Briefing], Audit]:
    told: list[Briefing] = []
    audit = Audit(resolve(rules="ALL", output=None, live=False))
    audit.start()
    Preflight(audit, told.append).attach()
    try:
        result = outcome(run)
    finally:
        audit.stop()
    return result, told, audit


TRAININGS = [
    *(getattr(test_bitwise, name) for name in ("mlp", "cnn", "gpt", "lstm", "gan", "accumulation", "amp", "lbfgs")),
    loaders,
    workers,
    stream,
    dictionary,
]  # fmt: skip


@pytest.mark.parametrize("run", TRAININGS, ids=lambda run: run.__name__)
def test_a_training_is_bitwise_the_same_after_a_preflight(run: Callable[[], Result]) -> None:
    plain = outcome(run)
    result, told, audit = flown(run)
    assert same(plain, result)
    assert len(told) == 1
    assert not [finding.message for finding in audit.findings if finding.rule == "TA000"]


def test_a_data_set_that_reads_an_open_file_goes_on_where_it_was(tmp_path: Path) -> None:
    plain = outcome(lambda: stateful(tmp_path))
    result, (briefing,), _ = flown(lambda: stateful(tmp_path))
    assert same(plain, result)
    assert [peeked.samples for peeked in briefing.loaders] == [64, 64]


SCRIPT = """\
import sys
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs, targets = torch.randn(96, 6), torch.randint(0, 3, (96,))
train_loader = DataLoader(TensorDataset(inputs[:64], targets[:64]), batch_size=16, shuffle=True)
val_loader = DataLoader(TensorDataset(inputs[64:], targets[64:]), batch_size=16)
model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
print("before", *sys.argv[1:])
for x, y in train_loader:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    print("a step")
"""


def preflight(folder: Path, script: str, *words: str) -> Ran:
    (folder / "train.py").write_text(script)
    return commands.ta_runtime(folder, "preflight", "--isolated", *words, "train.py", "--lr", "3")


def test_the_command_ends_the_script_before_its_first_step(tmp_path: Path) -> None:
    ran = preflight(tmp_path, SCRIPT)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "before --lr 3\n" in ran.stdout
    assert "a step" not in ran.stdout
    for told in (
        "train_loader, trains (train.py:7)",
        "looked at all 64 samples",
        "val_loader, held out (train.py:8)",
        "Sequential is given (train.py:14)",
        "float32 (16, 6)",
        "random guessing gives 1.099 (train.py:14)",
        "targets: int64 (16,), 0 to 2",
        "All checks passed",
    ):
        assert told in ran.stdout


def test_what_is_found_is_the_exit_status(tmp_path: Path) -> None:
    leaking = SCRIPT.replace("inputs[64:], targets[64:]", "inputs[32:], targets[32:]")
    ran = preflight(tmp_path, leaking, "--format", "json")
    assert ran.returncode == 1
    (found,) = json.loads(ran.stdout)
    assert (found["rule"], found["line"]) == ("TA320", 8)


def test_a_script_without_a_step_says_so(tmp_path: Path) -> None:
    ran = preflight(tmp_path, SCRIPT.replace("    optimizer.step()\n", ""))
    assert ran.returncode == 2
    assert "Sequential is given" in ran.stdout
    assert ran.stderr == "ta-runtime: the script ended without an optimizer step\n"


def test_a_script_that_raises_before_its_first_step_keeps_its_status(tmp_path: Path) -> None:
    ran = preflight(tmp_path, SCRIPT.replace("targets[:64]", "targets[:64] + 9"))
    assert ran.returncode == 1
    assert "IndexError" in ran.stderr
    assert "TA315" in ran.stdout


def test_the_page_shows_what_the_command_prints(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs/preflight.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```python title=train.py\n(.*?)```", page, re.DOTALL)
    (shown,) = re.findall(r"\$ ta-runtime preflight train.py\n(.*?)```", page, re.DOTALL)
    (tmp_path / "train.py").write_text(script)
    ran = commands.ta_runtime(tmp_path, "preflight", "train.py")
    number = re.compile(r"\d+\.\d+|\d+ steps?")  # seconds, and what kernels round in their own ways
    assert number.sub("N", ran.stdout) == number.sub("N", shown)


@pytest.mark.parametrize("program", score.programs("faults"), ids=lambda program: program.stem)
def test_a_planted_fault_is_named(program: Path, tmp_path: Path) -> None:
    ran = commands.ta_runtime(tmp_path, "preflight", *score.OPTIONS, str(program))
    assert score.found(ran.stdout) & score.wanted(program)


@pytest.mark.parametrize("program", score.programs("healthy"), ids=lambda program: program.stem)
def test_a_healthy_program_has_no_finding_above_a_note(program: Path, tmp_path: Path) -> None:
    ran = commands.ta_runtime(tmp_path, "preflight", *score.OPTIONS, str(program))
    assert not score.alarms(ran.stdout)


def test_a_bare_command_says_what_to_name() -> None:
    ran = commands.ta_runtime(Path(), "preflight")
    assert ran.returncode == 2
    assert ran.stderr.startswith("usage: ta-runtime preflight [options] SCRIPT")
