"""A dry run held against the real run of the same program: what is claimed and not so, and what is known of what happens."""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ta_lint.dryrun.dryrun import dry_run
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.stubs.torch.modules import MODULE, modules
from ta_lint.dryrun.stubs.torch.tensors import PARAMETER, Tensor
from ta_lint.dryrun.stubs.torch.training import held_by
from ta_lint.dryrun.values import Known, Object
from ta_lint.events.event import Event

REAL = Path(__file__).with_name("real_actions.py")
ACTIONS = frozenset({"forward", "backward", "step", "clear", "train", "eval", "clip"})
Name = tuple[int, str]


@dataclass
class Comparison:
    """How a dry run compares with the real one, in counts and in words."""

    program: str
    known: Counter[str] = field(default_factory=Counter)
    happened: Counter[str] = field(default_factory=Counter)
    false: list[str] = field(default_factory=list)
    unsaid: list[str] = field(default_factory=list)
    """What happens beside what is said, though all that is said is known."""
    missed: list[str] = field(default_factory=list)
    status: str = "ended"


def real_run(script: Path, timeout: float = 120) -> dict[str, Any]:
    """The actions of a real run."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, str(REAL), str(script)],
            capture_output=True, text=True, timeout=timeout, check=False, cwd=folder,
        )  # fmt: skip
    if not done.stdout.strip():
        return {"status": done.stderr[-300:], "actions": []}
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def names_of(machine: Machine) -> dict[int, Name]:
    """The parameters of a dry run by the line that made them and the name in their module."""
    names: dict[int, Name] = {}
    for event in machine.events:
        subject = event.subject
        if isinstance(subject, Object) and subject.cls.is_a(MODULE):
            for _, module in modules(subject):
                for key, value in module.fields.items():
                    if isinstance(value, Tensor) and value.cls is PARAMETER:
                        names.setdefault(id(value), (value.made.line if value.made else 0, str(key)))
    return names


def by_hand(event: Event) -> bool:
    """Whether it clears gradients without a function of torch, which no hook sees."""
    return event.action == "clear" and isinstance(event.subject, Tensor)


def compare(script: Path, real: dict[str, Any]) -> Comparison:
    """Hold a dry run of a script against what it really did."""
    result = Comparison(script.stem, status=real["status"])
    machine = dry_run(str(script))
    events = [
        event
        for event in machine.events
        if event.action in ACTIONS and event.place.file == str(script) and not by_hand(event)
    ]
    names = names_of(machine)
    done = {(action, line) for action, line, _ in real["actions"] if action in ACTIONS and line}
    said = {(event.action, event.place.line) for event in events} | {
        (mode, event.place.line)
        for event in machine.events
        if event.action == "mode"
        for mode in ("train", "eval")
    }
    for one in sorted(done):
        result.happened["actions"] += 1
        result.known["actions"] += one in said
        if one not in said:
            result.missed.append(f"{one[0]} in line {one[1]}")
    certain = {
        (event.action, event.place.line) for event in events if event.certain and len(event.functions) == 0
    }
    if real["status"] == "ended":
        result.false += [f"{action} in line {line} never happens" for action, line in sorted(certain - done)]
    _sets(result, real, machine, names)
    _modes(result, real, events)
    return result


Bounds = tuple[frozenset[Name], frozenset[Name], bool]
"""What a set has at least and at most, and whether it certainly comes to that."""


def _sets(result: Comparison, real: dict[str, Any], machine: Machine, names: dict[int, Name]) -> None:
    for action, key, what in (("backward", "reaches", "losses"), ("step", "holds", "optimizers")):
        truth: dict[int, set[frozenset[Name]]] = {}
        for done, line, known in real["actions"]:
            if done == action:
                truth.setdefault(line, set()).add(frozenset(tuple(one) for one in known[key]))
        claims: dict[int, list[Bounds]] = {}
        unknown = set()
        for event in machine.events:
            if event.action == action and isinstance(event.subject, Object) and event.entry is None:
                bounds = _bounds(event, names)
                if bounds is None:
                    unknown.add(event.place.line)
                else:
                    claims.setdefault(event.place.line, []).append(bounds)
        for line, sets in truth.items():
            said = claims.get(line, [])
            exact = {most for least, most, _ in said if least == most}
            result.happened[f"{what}, exactly"] += 1
            result.happened[what] += 1
            result.known[f"{what}, exactly"] += line not in unknown and sets <= exact
            wrong = [
                one for one in said if one[2] and not any(one[0] <= real_one <= one[1] for real_one in sets)
            ]
            unsaid = [real_one for real_one in sets if not any(one[0] <= real_one <= one[1] for one in said)]
            known = bool(said) and line not in unknown and not wrong and not unsaid
            result.known[what] += known
            for claim in wrong[:1]:
                nearest = min(sets, key=lambda one, claim=claim: len(one ^ claim[1]))  # type: ignore[misc]
                result.false.append(
                    f"{what} in line {line}: too many {sorted(claim[0] - nearest)[:4]}, too few {sorted(nearest - claim[1])[:4]}"
                )
            if unsaid and said and line not in unknown and not wrong:
                result.unsaid.append(f"{what} in line {line}: {sorted(unsaid[0])[:4]}, too")
            if not known and not wrong:
                result.missed.append(f"{what} in line {line}")


def _bounds(event: Event, names: dict[int, Name]) -> Bounds | None:
    """What an event says of the parameters that it is about; None where it may be about others, too."""
    if event.action == "backward":
        most, perhaps, complete = event.detail["roots"], event.detail["perhaps"], not event.detail["open"]
    else:
        group = held_by(event.subject)
        most, perhaps, complete = group.parameters, (), group.complete
    named = frozenset(names.get(id(one), (0, "")) for one in most)
    if not complete or "parameters of its own" in [key for _, key in named]:
        return None
    return named - {names.get(id(one), (0, "")) for one in perhaps}, named, event.certain


def _modes(result: Comparison, real: dict[str, Any], events: list[Any]) -> None:
    truth: dict[tuple[int, str], set[tuple[bool, bool]]] = {}
    for what, line, known in real["actions"]:
        if what == "forward":
            truth.setdefault((line, known["cls"]), set()).add((known["training"], known["recording"]))
    claims: dict[tuple[int, str], set[tuple[Any, Any]]] = {}
    certain: dict[tuple[int, str], set[tuple[Any, Any]]] = {}
    for event in events:
        if event.action == "forward" and event.entry is None:
            training = event.detail["training"]
            mode = training.value if isinstance(training, Known) else None
            key = event.place.line, event.subject.cls.name.rpartition(".")[2]
            claims.setdefault(key, set()).add((mode, event.detail["recording"]))
            if event.certain:
                certain.setdefault(key, set()).add((mode, event.detail["recording"]))
    for key, seen in truth.items():
        result.happened["calls"] += 1
        claim = claims.get(key, set())
        known = bool(claim) and all(None not in one for one in claim)
        wrong = {one for one in certain.get(key, set()) if None not in one} - seen
        unsaid = seen - claim if known else set()
        result.known["calls"] += known and not wrong and not unsaid
        if wrong and real["status"] == "ended":
            result.false.append(f"call of {key[1]} in line {key[0]}: {sorted(wrong)}, really {sorted(seen)}")
        elif unsaid:
            result.unsaid.append(f"call of {key[1]} in line {key[0]}: {sorted(unsaid)}, too")
        elif not known:
            result.missed.append(f"mode of {key[1]} in line {key[0]}")


def summary(results: list[Comparison]) -> Iterator[str]:
    """The shares over all programs."""
    happened: Counter[str] = sum((one.happened for one in results), Counter())
    known: Counter[str] = sum((one.known for one in results), Counter())
    for what, count in happened.items():
        yield f"{what}: {known[what]} of {count} ({known[what] / count:.1%})"
    yield f"false claims: {sum(len(one.false) for one in results)} in {len(results)} programs"
