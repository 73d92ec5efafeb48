"""A dry run of a framework's program held against the real one: what happens between two steps of an optimizer, in which order.

In a framework the lines are in the library, so the order is held without them; what modules, losses and optimizers know is held as well.
"""

import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import commands

from ta_lint.dryrun.dryrun import dry_run
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.stubs.torch.gradients import held_by
from ta_lint.dryrun.stubs.torch.modules import MODULE, modules
from ta_lint.dryrun.stubs.torch.tensors import PARAMETER, Tensor
from ta_lint.dryrun.values import Known, Object
from ta_lint.events.event import Event

REAL = Path(__file__).with_name("framework_actions.py")
SHOWN = frozenset("forward backward clip step clear schedule train eval".split())
UNRECORDED = "forward without a graph"
LONGEST = 4
"""Of what may happen again at once, in words."""
OWN = "parameters of its own"
"""The parameter that stands for all of a model whose layers are out of sight."""
Step = tuple[str, ...]
Name = tuple[int, str]


@dataclass
class Held:
    """How a dry run compares with the real one."""

    false: list[str] = field(default_factory=list)
    known: Counter[str] = field(default_factory=Counter)
    happened: Counter[str] = field(default_factory=Counter)


def real_run(script: Path, *loads: str) -> dict[str, Any]:
    """The actions of a real run, which finds modules loaded."""
    with tempfile.TemporaryDirectory() as folder:
        done = commands.warm(Path(folder), str(REAL), str(script), loads=loads, timeout=300)
    if not done.stdout.strip():
        return {"status": done.stderr[-300:], "actions": []}
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def hold(script: Path, real: dict[str, Any]) -> Held:
    """Hold a dry run of a script against what it really did."""
    held = Held()
    machine = dry_run(str(script))
    events = [event for event in machine.events if event.entry is None and event.place.file == str(script)]
    really, said = real_steps(real), dry_steps(events)
    held.happened["steps"] = really.total()
    held.known["steps"] = sum(count for step, count in really.items() if step in said)
    held.false += [
        f"a step is {' '.join(step)}" for step, certain in said.items() if certain and step not in really
    ]
    names = _names(machine)
    _sets(held, "backward", "reaches", real, [(event, _reached(event)) for event in events], names)
    _sets(held, "step", "holds", real, [(event, _held(event)) for event in events], names)
    _calls(held, real, events)
    return held


def real_steps(real: dict[str, Any]) -> Counter[Step]:
    """How often each order of a step happened."""
    words = (
        UNRECORDED if action == "forward" and not known["recording"] else action
        for action, _, known in real["actions"]
    )
    return Counter(_split(words))


def dry_steps(events: list[Event]) -> dict[Step, bool]:
    """The orders that a dry run says, each with whether all of it is certain."""
    said: dict[Step, bool] = {}
    words: list[tuple[str, bool]] = []
    for event in _again([event for event in events if event.action in SHOWN], 0):
        unrecorded = event.action == "forward" and event.detail["recording"] is not True
        words.append((UNRECORDED if unrecorded else event.action, event.certain))
        if event.action == "step":
            certain = [word for word, sure in words if sure]
            for happens in ([word for word, _ in words], certain):
                for step in _split(happens):
                    said[step] = said.get(step, False) or len(certain) == len(words)
            words = []
    return said


def _again(events: list[Event], depth: int) -> Iterator[Event]:
    """The events, those in the second pass of a loop twice: it stands for the later ones, so it comes after itself as well."""
    for now, group in groupby(
        events, lambda event: event.passes[depth] if depth < len(event.passes) else None
    ):
        inner = list(group)
        if now is not None:
            inner = list(_again(inner, depth + 1))
        yield from inner if now is None or now[1] != 1 else inner * 2


def _split(words: Iterable[str]) -> Iterator[Step]:
    """What happens up to each step. What happens again at once counts once: layers of a model, batches that are accumulated."""
    step: list[str] = []
    for word in words:
        step.append(word)
        for length in range(1, LONGEST + 1):
            if step[-length:] == step[-2 * length : -length]:
                del step[-length:]
        if word == "step":
            yield tuple(step)
            step = []


def _names(machine: Machine) -> dict[int, Name]:
    """The parameters of a dry run by the line that made them and the name in their module."""
    names: dict[int, Name] = {}
    for event in machine.events:
        if isinstance(event.subject, Object) and event.subject.cls.is_a(MODULE):
            for _, module in modules(event.subject):
                for key, value in module.fields.items():
                    if isinstance(value, Tensor) and value.cls is PARAMETER:
                        names.setdefault(id(value), (value.made.line if value.made else 0, str(key)))
    return names


def _reached(event: Event) -> tuple[Any, bool] | None:
    return (event.detail["roots"], not event.detail["open"]) if event.action == "backward" else None


def _held(event: Event) -> tuple[Any, bool] | None:
    if event.action != "step" or not isinstance(event.subject, Object):
        return None
    group = held_by(event.subject)
    return group.parameters, group.complete


def _sets(
    held: Held,
    action: str,
    key: str,
    real: dict[str, Any],
    claims: list[tuple[Event, Any]],
    names: dict[int, Name],
) -> None:
    """The parameters that losses reach, or that optimizers hold, by the line that leads to it."""
    truth: dict[int, set[frozenset[Name]]] = defaultdict(set)
    for what, line, known in real["actions"]:
        if what == action:
            truth[line].add(frozenset(tuple(one) for one in known[key]))
    said: dict[int, set[frozenset[Name]]] = defaultdict(set)
    for event, claim in claims:
        named = {names.get(id(one), (0, "")) for one in claim[0]} if claim else set()
        if claim and claim[1] and OWN not in {name for _, name in named}:
            said[event.place.line].add(frozenset(named))
    for line in truth:
        held.happened[key] += 1
        held.known[key] += bool(said[line])
    held.false += [
        f"line {line} {key} {sorted(one)}"
        for line, sets in said.items()
        for one in sets
        if one not in truth[line]
    ]


def by_name(event: Event) -> bool:
    """Whether a model is run by `model.forward(x)`, of which no hook of torch is told."""
    called = getattr(event.place.node, "func", None)
    return getattr(called, "attr", "") == "forward"


def _calls(held: Held, real: dict[str, Any], events: list[Event]) -> None:
    """The mode of each call of a module, and whether it records."""
    truth: dict[tuple[int, str], set[tuple[bool, bool]]] = defaultdict(set)
    for what, line, known in real["actions"]:
        if what == "forward":
            truth[line, known["cls"]].add((known["training"], known["recording"]))
    said: dict[tuple[int, str], set[tuple[Any, Any]]] = defaultdict(set)
    for event in events:
        if event.action == "forward" and "out of sight" not in event.subject.cls.name and not by_name(event):
            training = event.detail["training"]
            mode = training.value if isinstance(training, Known) else None
            said[event.place.line, event.subject.cls.name.rpartition(".")[2]].add(
                (mode, event.detail["recording"])
            )
    for key, modes in truth.items():
        held.happened["calls"] += 1
        held.known["calls"] += bool(said[key]) and said[key] <= modes
    held.false += [
        f"call of {key[1]} in line {key[0]}: {sorted(modes)}"
        for key, modes in said.items()
        if all(None not in one for one in modes) and not modes <= truth[key]
    ]
