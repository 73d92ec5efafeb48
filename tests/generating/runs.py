"""Real runs of generated programs, one after another, in forks of one process that has loaded torch."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from oracle import REAL, Comparison, Real, compare, is_seen
from runnable import Program as Script

from ta_lint.dryrun.dryrun import dry_run
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.program import Program, layout_of
from ta_lint.dryrun.stubs.torch.modules import MODULE, held, modules
from ta_lint.dryrun.stubs.torch.tensors import Tensor
from ta_lint.dryrun.values import Known, Object, Sequence, Table, Value


class Runner:
    """Runs programs for real, and dry beside it."""

    def __init__(self, folder: Path, process: "subprocess.Popen[str]") -> None:
        self._script = folder / "train.py"
        self._result = folder / "train.json"
        self._process = process

    def real(self, text: str) -> Real:
        """What the program really does."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._script.write_text(text, "utf-8")
        self._result.unlink(missing_ok=True)
        self._process.stdin.write(f"{self._script}\t{self._result}\n")
        self._process.stdin.flush()
        self._process.stdout.readline()
        return json.loads(self._result.read_text("utf-8"))  # type: ignore[no-any-return]

    def compared(self, text: str) -> Comparison:
        """How a dry run of the program compares; `status` is not `ended` if the program cannot run."""
        real = self.real(text)
        if real["status"] != "ended":
            return Comparison("generated", status=real["status"])
        result = compare(Script("generated", self._script, text), real)
        misfits = (f"{name} does not find what it looks for" for name in result.misfits)
        result.false += [
            *misfits,
            *result.unsaid,
            *_uncertain(self._script, real),
            *_left(self._script, real),
        ]
        return result


@contextmanager
def runner(folder: Path) -> Iterator[Runner]:
    """A process that runs programs, until the end."""
    process = subprocess.Popen(
        [sys.executable, str(REAL), "0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        yield Runner(folder, process)
    finally:
        process.kill()
        process.wait()


def _uncertain(script: Path, real: Real) -> Iterator[str]:
    """What is said to happen for certain in a function, and never does."""
    done = {(action, line) for action, line, _ in real["actions"]}
    kinds = {action for action, _ in done} & {"forward", "backward", "step", "clear", "clip"}
    machine = dry_run(str(script))
    said = {
        (event.action, event.place.line)
        for event in machine.events
        if is_seen(event, str(script)) and event.certain and event.functions and event.action in kinds
    }
    for action, line in sorted(said - done):
        yield f"{action} in line {line} of a function never happens"


def _left(script: Path, real: Real) -> Iterator[str]:
    """What is said of the names at the top level when the program ends, and is not so."""
    machine = Machine(Program(layout_of(str(script))))
    try:  # without what nobody calls, which `dry_run` runs after it
        names = machine.program.module(machine, str(script), "__main__").fields
    finally:
        machine.give_back()
    for name, really in real["names"].items():
        if really is not None and name in names and not name.startswith("__"):
            for why in _differs(names[name], really):
                yield f"{name} in the end: {why}"


def _differs(said: Value, really: Any) -> Iterator[str]:  # noqa: C901 - one case for each kind
    if really is None:
        return
    kind, *rest = really
    if isinstance(said, Known):
        if kind != "constant" or (rest[0] != repr(said.value) and not isinstance(said.value, tuple | list)):
            yield f"{said!r}, really {really}"
    elif isinstance(said, Sequence):
        if kind == "sequence":
            items = rest[0]
            if said.rest is None and len(said.items) != len(items):
                yield f"{len(said.items)} items, really {len(items)}"
            for one, other in zip(said.items, items, strict=False):
                yield from _differs(one, other)
            if len(said.items) > len(items):
                yield f"at least {len(said.items)} items, really {len(items)}"
        elif said.cls.name != "set":
            yield f"a {said.cls.name}, really {really}"
    elif isinstance(said, Table):
        if kind == "table":
            keys = dict(rest[0])
            for key, one in said.entries():
                if repr(key) not in keys:
                    yield f"has {key!r}, really {list(keys)}"
                else:
                    yield from _differs(one, keys[repr(key)])
            if said.rest is None and len(keys) > len(dict(said.entries())):
                yield f"only {[key for key, _ in said.entries()]}, really {list(keys)}"
        else:
            yield f"a dictionary, really {really}"
    elif isinstance(said, Tensor):
        facts = said.facts
        if kind == "tensor":
            takes = (
                True
                if facts.roots or facts.requires is True
                else None
                if facts.perhaps or facts.open or facts.requires is None
                else False
            )
            if takes is not None and takes is not rest[0]:
                yield f"requires_grad {takes}, really {rest[0]}"
            shape = facts.shape
            if shape is not None and (
                len(shape) != len(rest[1])
                or any(isinstance(a, int) and a != b for a, b in zip(shape, rest[1], strict=True))
            ):
                yield f"shape {shape}, really {rest[1]}"
        else:
            yield f"a tensor, really {really}"
    elif isinstance(said, Object) and said.cls.is_a(MODULE):
        if kind == "module":
            training = said.fields.get("training")
            if isinstance(training, Known) and training.value is not rest[1]:
                yield f"training {training.value}, really {rest[1]}"
            own = held(said)
            listed = not any("…" in one.fields for _, one in modules(said))
            if (
                listed
                and own.complete
                and len(own.parameters) != rest[2]
                and "parameters of its own" not in dict(own.parameters)
            ):
                yield f"{len(own.parameters)} parameters, really {rest[2]}"
        else:
            yield f"a module, really {really}"
