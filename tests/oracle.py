"""A dry run held against the real run of the same program: what is claimed and not so, and what is known of what happens.

A claim is what the dry run says without doubt. It is false if the real run shows something else. What really happens and the dry run does
not say is missed. Neither guessed entries nor what happens in another file than the script counts.
"""

import ast
import hashlib
import json
import subprocess
import sys
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from framework_steps import by_name
from runnable import Program

from ta_lint.dryrun.dryrun import dry_run
from ta_lint.dryrun.machine import assigning, calling, objects
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import STUB
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.state import State
from ta_lint.dryrun.stubs.torch.gradients import held_by
from ta_lint.dryrun.stubs.torch.modules import MODULE, is_module, modules
from ta_lint.dryrun.stubs.torch.tensors import PARAMETER, Tensor
from ta_lint.dryrun.values import Known, Native, Object, Value, options
from ta_lint.events.event import Event

REAL = Path(__file__).with_name("real_actions.py")
ACTIONS = frozenset({"forward", "backward", "step", "clear", "train", "eval", "clip"})
KINDS = ("actions", "losses", "optimizers", "calls", "shapes", "dtypes")
Name = tuple[int, str]
Key = tuple[str, int]
Real = dict[str, Any]
"""What `real_actions.py` writes about a run."""


@dataclass
class Comparison:
    """How a dry run compares with the real one, in counts and in words."""

    program: str
    status: str = "ended"
    known: Counter[str] = field(default_factory=Counter)
    happened: Counter[str] = field(default_factory=Counter)
    false: list[str] = field(default_factory=list)
    missed: list[tuple[str, str]] = field(default_factory=list)
    """What, and why."""
    unsaid: list[str] = field(default_factory=list)
    """What happens beside what is said, though all that is said is known."""
    misfits: dict[str, str] = field(default_factory=dict)
    """The stubs that did not find what they look for."""

    def count(self, kind: str, known: bool, what: str, why: str) -> None:
        """Something really happened."""
        self.happened[kind] += 1
        self.known[kind] += known
        if not known:
            self.missed.append((f"{kind}: {what}", why))


def real_runs(programs: Iterable[Program], folder: Path, jobs: int = 2) -> Iterator[tuple[Program, Real]]:
    """The real run of each program; those that `folder` has from an earlier time are not run again."""
    folder.mkdir(parents=True, exist_ok=True)
    recorder = REAL.read_text("utf-8")
    results = {
        program: folder
        / f"{hashlib.sha256((program.name + program.source + recorder).encode()).hexdigest()}.json"
        for program in programs
    }
    missing = [f"{program.path}\t{path}\n" for program, path in results.items() if not path.exists()]
    if missing:
        subprocess.run([sys.executable, str(REAL), str(jobs)], input="".join(missing), text=True, check=True)
    for program, path in results.items():
        yield program, json.loads(path.read_text("utf-8")) if path.exists() else _NOTHING


LEFT_OUT = {"odd: monkeypatched": "it replaces functions of torch that the hooks are in"}
_NOTHING: Real = {"status": "it ends its own process", "actions": [], "follows": [], "outputs": []}


def left_out(program: Program, real: Real) -> str:
    """Why a run says nothing about a dry run; empty if it does."""
    if program.name in LEFT_OUT:
        return LEFT_OUT[program.name]
    if "torch.jit." in program.source:
        return "torch compiles its code, which then runs no hooks"
    if real["actions"]:
        return ""
    if real["status"] == "ended":
        return "nothing that torch's hooks see"
    return str(real["status"]).partition(":")[0]


def compare(program: Program, real: Real) -> Comparison:
    """Hold a dry run of a program against what it really did."""
    result = Comparison(program.name, real["status"])
    with _watched() as watched:
        machine = dry_run(str(program.path))
    result.misfits = machine.misfits
    truth = {(action, line) for action, line, _ in real["actions"]}
    happens = [
        Happens(event, _key(event, truth), bisect(watched.unfollowed, index))
        for index, event in enumerate(machine.events)
        if is_seen(event, str(program.path))
    ]
    happens = [one for one in happens if one.key in truth or not _is_out_of_sight(one.event)]
    _actions(result, real, truth, happens, _lines_called(machine, str(program.path)))
    _sets(result, real, happens, _names(machine, watched))
    _calls(result, real, happens)
    _outputs(result, real, happens)
    result.false = list(dict.fromkeys(result.false))
    return result


@dataclass
class Happens:
    """An event of the dry run."""

    event: Event
    key: Key
    """The action and the line."""
    unfollowed: int
    """How many calls before it the dry run has not gone into."""

    @property
    def certain(self) -> bool:
        """Whether it certainly happens. A scaler leaves out a step whose gradients are infinite."""
        return self.event.certain and not self.event.detail.get("by")


def is_seen(event: Event, script: str) -> bool:
    """Whether torch's hooks see an event. Gradients that are cleared by hand, or clipped by a hook of the program, have none."""
    if event.entry is not None or event.place.file != script:
        return False
    by_hand = event.action == "clear" and isinstance(event.subject, Tensor)
    return event.action in {*ACTIONS, "mode"} and not (by_hand or "hook" in event.detail)


def _is_out_of_sight(event: Event) -> bool:
    """Whether a library other than torch calls this module: a real run does not look into it."""
    return event.action == "forward" and bool(event.functions) and _of_library(event.functions[-1].frame.file)


@cache
def _of_library(file: str) -> bool:
    """Whether it is the program of a library other than torch."""
    return file.endswith(STUB) and not Path(file).read_text("utf-8").startswith("# torch")


def _key(event: Event, truth: set[Key]) -> Key:
    """The line of a call is that of its beginning, or of the name that is called, if they are in several lines."""
    node = event.place.node
    lines = (event.place.line, getattr(getattr(node, "func", node), "end_lineno", 0))
    actions = ("train", "eval") if event.action == "mode" else (event.action,)
    keys = [(action, line) for action in actions for line in lines]
    return next((key for key in keys if key in truth), keys[0])


def _actions(
    result: Comparison, real: Real, truth: set[Key], happens: list[Happens], called: set[int]
) -> None:
    ended = real["status"] == "ended"
    said = {one.key for one in happens}
    follows = {(tuple(one), tuple(other)) for one, other in real["follows"]}
    allowed = set(_followers(happens))
    before: dict[Any, list[Any]] = defaultdict(list)
    for one, other in follows:
        before[other].append(one)
    for key in sorted(truth):
        ordered = all(one == key or one not in said or (one, key) in allowed for one in before[key])
        why = (
            "" if key in said else "its function is not called" if key[1] not in called else "not seen there"
        )
        result.count(
            "actions", key in said and ordered, f"{key[0]} in line {key[1]}", why or "in another order"
        )
    if not ended:
        return
    for key in sorted({one.key for one in happens if one.certain and one.event.action != "mode"} - truth):
        result.false.append(f"{key[0]} in line {key[1]} never happens")
    after: dict[Any, set[Any]] = defaultdict(set)
    for one, other in follows:
        after[one].add(other)
    for one, other in _claimed(happens):
        if one in truth and other in truth and other not in _next_said(one, after, said):
            result.false.append(f"{other} after {one}, which is never so")


def _lines_called(machine: Machine, script: str) -> set[int]:
    """The lines of a script that run, but for those that only guessed entries run."""
    tree = machine.program.tree(script)
    lines = set(range(len(ast.unparse(tree)) if tree else 0))
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node not in machine.called:
            lines -= set(range(node.lineno + 1, (node.end_lineno or 0) + 1))
    return lines


def _followers(happens: list[Happens]) -> Iterator[tuple[Any, Any]]:
    """Each pair of actions of which one may follow the other with none in between, also from the end of a pass to the next."""
    yield from ((_START, other.key) for other in _until_certain(happens[:200]))
    for index, one in enumerate(happens):
        following = _until_certain(happens[index + 1 : index + 200])
        yield from ((one.key, other.key) for other in following)
        for depth, (_, number) in enumerate(one.event.passes, 1):
            passes = one.event.passes[:depth]
            if number and not (
                following and following[-1].certain and following[-1].event.passes[:depth] == passes
            ):
                first = index
                while first and happens[first - 1].event.passes[:depth] == passes:
                    first -= 1
                yield from ((one.key, other.key) for other in _until_certain(happens[first : index + 1]))


_START = ("start", 0)


def _until_certain(happens: list[Happens]) -> list[Happens]:
    """The first actions, up to one that certainly happens."""
    end = next((index for index, one in enumerate(happens) if one.certain), len(happens))
    return happens[: end + 1]


def _claimed(happens: list[Happens]) -> Iterator[tuple[Any, Any]]:
    """The pairs of which one certainly follows the other, in the same pass of the same loops, with nothing unfollowed in between."""
    for one, other in pairwise(happens):
        surely = one.certain and other.certain and one.unfollowed == other.unfollowed
        if surely and one.key != other.key and one.event.passes == other.event.passes:
            yield one.key, other.key


def _next_said(one: Any, after: dict[Any, set[Any]], said: set[Key]) -> set[Any]:
    """What follows an action, past those of which the dry run says nothing."""
    found, pending, seen = set(), list(after[one]), set()
    while pending:
        key = pending.pop()
        if key in said:
            found.add(key)
        elif key not in seen:
            seen.add(key)
            pending.extend(after[key])
    return found


@dataclass
class Watched:
    """What a dry run does besides its events."""

    modules: list[Value] = field(default_factory=list)
    """Those that it makes."""
    written: dict[int, tuple[Tensor, str]] = field(default_factory=dict)
    """The parameters, with the first name that each gets."""
    assigned: dict[int, tuple[Tensor, Name]] = field(default_factory=dict)
    """The parameters that become an attribute of a module, perhaps, with the line of that and the name."""
    unfollowed: list[int] = field(default_factory=list)
    """How many events were before each call that it does not go into."""


_PERHAPS: Name = (0, "perhaps")
"""The name of a parameter that perhaps has none: it, or something computed from it, becomes an attribute."""


@contextmanager
def _watched() -> Iterator[Watched]:
    watched, fields = Watched(), set[int]()
    write, hand_over, assign = State.write, calling.hand_over, objects.set_attribute

    def created(create: Native, call: Call) -> Value:
        module = create.run(call)
        assert isinstance(module, Object)
        watched.modules.append(module)
        fields.add(id(module.fields))
        return module

    def written(state: State, store: dict[Any, Any], key: Any, value: Any) -> None:
        if isinstance(value, Tensor) and value.cls is PARAMETER and id(store) in fields:
            watched.written.setdefault(id(value), (value, key))
        write(state, store, key, value)

    def assigned(machine: Machine, owner: Value, name: str, value: Value, node: ast.AST) -> None:
        if is_module(owner) and not machine.place(node).file.endswith(STUB):
            for one in options(value):
                if isinstance(one, Tensor) and one.cls is PARAMETER and id(one) not in watched.written:
                    own = (machine.place(node).line, name) if one is value else _PERHAPS
                    watched.assigned.setdefault(id(one), (one, own))
        assign(machine, owner, name, value, node)

    def handed_over(machine: Machine, *given: Any) -> None:
        watched.unfollowed.append(len(machine.events))
        hand_over(machine, *given)

    with pytest.MonkeyPatch.context() as patch:
        for name in ("__new__", "__copied__"):
            create = MODULE.fields[name]
            patch.setitem(MODULE.fields, name, Native(create.name, partial(created, create)))
        patch.setattr(State, "write", written)
        patch.setattr(calling, "hand_over", handed_over)
        patch.setattr(assigning, "set_attribute", assigned)
        yield watched


def _names(machine: Machine, watched: Watched) -> dict[int, Name]:
    """The parameters of a dry run by the line that made them and the name in their module."""
    names: dict[int, Name] = {key: name for key, (_, name) in watched.assigned.items()}
    for root in (*watched.modules, *(event.subject for event in machine.events)):
        if isinstance(root, Object) and root.cls.is_a(MODULE):
            for _, module in modules(root):
                for key, value in module.fields.items():
                    if isinstance(value, Tensor) and value.cls is PARAMETER:
                        line = value.made.line if value.made else 0
                        names.setdefault(id(value), (line, _first_name(str(key))))
    for value, key in watched.written.values():
        names.setdefault(id(value), (value.made.line if value.made else 0, _first_name(key)))
    return names


def _first_name(key: str) -> str:
    """The name that a parameter had before torch moved it aside, to compute the weight of its layer from it."""
    return (
        key.removesuffix("_orig")
        .removesuffix(".original")
        .removeprefix("parametrizations.")
        .rpartition(".")[2]
    )


def _sets(result: Comparison, real: Real, happens: list[Happens], names: dict[int, Name]) -> None:
    distant = {line for line, key in names.values() if key == _DISTANT}
    for action, kind, known in (("backward", "losses", "reaches"), ("step", "optimizers", "holds")):
        truth: dict[Key, set[frozenset[Name]]] = defaultdict(set)
        for what, line, detail in real["actions"]:
            if what == action:
                truth[what, line].add(frozenset(_in_sight(tuple(one), distant) for one in detail[known]))
        claims: dict[Key, set[frozenset[Name]]] = defaultdict(set)
        certain: dict[Key, set[frozenset[Name]]] = defaultdict(set)
        bounds: dict[Key, list[Bounds]] = defaultdict(list)
        unknown: dict[Key, str] = {}
        for one in happens:
            if one.event.action == action:
                claim, most, why = _set(one.event, names)
                bounds[one.key].append((claim, None if why else most, one.event.certain))
                why = why or ("it depends" if claim != most else "")
                if why:
                    unknown[one.key] = why
                    if action == "backward" and not any(claim <= all_ for all_ in truth.get(one.key, ())):
                        certain[one.key].add(claim)  # it reaches at least these
                else:
                    claims[one.key].add(claim)
                    if one.event.certain:
                        certain[one.key].add(claim)
        for key, sets in truth.items():
            why = unknown.get(key, "it differs" if claims[key] else "not seen there")
            exact = _is_exact(claims[key], sets, real) and key not in unknown
            result.count(kind, exact, f"in line {key[1]}", why)
            wrong = (certain[key] - sets) | (
                claims[key] if not claims[key] & sets and key not in unknown else set()
            )
            wrong |= {
                one[0] for one in bounds[key] if one[2] and not any(_within(all_, one) for all_ in sets)
            }
            if wrong and real["status"] == "ended":
                claim = min(wrong, key=sorted)
                nearest = min(sets, key=lambda one: len(one ^ claim))
                result.false.append(
                    f"{kind} in line {key[1]}: too many {sorted(claim - nearest)[:4]}, too few {sorted(nearest - claim)[:4]}"
                )
            unsaid = [all_ for all_ in sets if not any(_within(all_, one) for one in bounds[key])]
            if unsaid and bounds[key] and not wrong:
                result.unsaid.append(f"{kind} in line {key[1]}: {sorted(unsaid[0])[:4]}, too")


Bounds = tuple[frozenset[Name], frozenset[Name] | None, bool]
"""What a set has at least and at most, None if nobody knows, and whether it certainly comes to that."""


def _within(truth: frozenset[Name], bounds: Bounds) -> bool:
    return bounds[0] <= truth and (bounds[1] is None or truth <= bounds[1])


def _is_exact(claims: set[Any], truth: set[Any], real: Real) -> bool:
    """Whether just this is claimed; of a run that breaks off, the rest of the claims is not seen."""
    return claims == truth or (real["status"] != "ended" and claims >= truth)


def _set(event: Event, names: dict[int, Name]) -> tuple[frozenset[Name], frozenset[Name], str]:
    """The parameters that a loss reaches or an optimizer holds, at least and at most, or why nobody knows all of them."""
    more: frozenset[Tensor] = frozenset()
    if event.action == "backward":
        parameters, why = event.detail["roots"], "; ".join(event.detail["open"])
        more = event.detail["perhaps"]
    elif isinstance(event.subject, Object):
        group = held_by(event.subject)
        parameters, why = group.parameters, "" if group.complete else "parameters that nobody knows"
    else:
        return frozenset(), frozenset(), "the optimizer is not known"
    if any(names.get(id(one)) == _PERHAPS for one in parameters):
        parameters = [one for one in parameters if names.get(id(one)) != _PERHAPS]
        why = why or "a parameter that is perhaps the attribute of a module"
    claim = frozenset(names.get(id(one), (0, "")) for one in parameters)
    return claim, claim | {names.get(id(one), (0, "")) for one in more}, why


_DISTANT = "parameters of its own"


def _in_sight(name: Name, distant: set[int]) -> Name:
    """The parameters of a model that a library makes in one line are one."""
    return (name[0], _DISTANT) if name[0] in distant else name


def _calls(result: Comparison, real: Real, happens: list[Happens]) -> None:
    """The mode of each call of a module, and whether autograd records it."""
    truth: dict[tuple[int, str], set[tuple[bool, bool]]] = defaultdict(set)
    for what, line, known in real["actions"]:
        if what == "forward":
            truth[line, known["cls"]].add((known["training"], known["recording"]))
    claims: dict[tuple[int, str], set[tuple[Any, Any]]] = defaultdict(set)
    certain: dict[tuple[int, str], set[tuple[Any, Any]]] = defaultdict(set)
    for one in happens:
        if one.event.action == "forward" and not by_name(one.event):
            training = one.event.detail["training"]
            mode = training.value if isinstance(training, Known) else None
            claim = mode, one.event.detail["recording"]
            claims[one.key[1], _class(one.event)].add(claim)
            if one.event.certain and None not in claim:
                certain[one.key[1], _class(one.event)].add(claim)
    for (line, cls), seen in truth.items():
        claim_ = claims[line, cls]
        why = "not seen there" if not claim_ else f"said {_listed(claim_)}, really {_listed(seen)}"
        result.count("calls", _is_exact(claim_, seen, real), f"{cls} in line {line}", why)
        if claim_ and seen - claim_ and not any(None in one for one in claim_):
            result.unsaid.append(f"call of {cls} in line {line}: {_listed(seen - claim_)}, too")
        if certain[line, cls] - seen and real["status"] == "ended":
            result.false.append(
                f"call of {cls} in line {line}: {_listed(certain[line, cls])}, really {_listed(seen)}"
            )


def _listed(claims: set[tuple[Any, Any]]) -> str:
    modes, recorded = {True: "train", False: "eval", None: "?"}, {True: "", False: " unrecorded", None: " ?"}
    return " or ".join(sorted(modes[mode] + recorded[recording] for mode, recording in claims))


def _class(event: Event) -> str:
    return str(event.subject.cls.name.rpartition(".")[2])


def _outputs(result: Comparison, real: Real, happens: list[Happens]) -> None:
    """The shapes and dtypes that modules give: of how many all is known."""
    truth: dict[tuple[int, str], set[tuple[tuple[int, ...], str]]] = defaultdict(set)
    for line, cls, shape, dtype in real["outputs"]:
        truth[line, cls].add((tuple(shape), dtype.removeprefix("torch.")))
    claims: dict[tuple[int, str], list[tuple[Any, Any]]] = defaultdict(list)
    for one in happens:
        output = one.event.detail.get("output")
        if output is not None:
            at = one.key[1], _class(one.event)
            claims[at].append((output.shape, output.dtype))
            wrong = at in truth and not any(
                _fits(output.shape, shape) and output.dtype in (None, dtype) for shape, dtype in truth[at]
            )
            if wrong and one.event.certain and real["status"] == "ended":
                result.false.append(
                    f"output of {at[1]} in line {at[0]}: {output.shape} {output.dtype}, really {sorted(truth[at])[:3]}"
                )
    for at, seen in truth.items():
        shapes = {
            shape
            for shape, _ in claims[at]
            if shape is not None and all(isinstance(one, int) for one in shape)
        }
        result.count("shapes", shapes == {shape for shape, _ in seen}, f"{at[1]} in line {at[0]}", "")
        result.count(
            "dtypes",
            {dtype for _, dtype in claims[at]} == {dtype for _, dtype in seen},
            f"{at[1]} in line {at[0]}",
            "",
        )


def _fits(claim: Any, shape: tuple[int, ...]) -> bool:
    return claim is None or (
        len(claim) == len(shape)
        and all(not isinstance(one, int) or one == size for one, size in zip(claim, shape, strict=True))
    )


def compared(programs: Iterable[Program], folder: Path, jobs: int = 2) -> list[Comparison]:
    """The comparisons of all programs whose real runs say something."""
    runs = real_runs(programs, folder / "results", jobs)
    return [compare(program, real) for program, real in runs if not left_out(program, real)]


def shares(results: list[Comparison]) -> dict[str, float]:
    """Of what really happens, the share that is known, by kind."""
    return {
        kind: sum(one.known[kind] for one in results) / (sum(one.happened[kind] for one in results) or 1)
        for kind in KINDS
    }


def summary(results: list[Comparison]) -> Iterator[str]:
    """The shares over all programs."""
    happened: Counter[str] = sum((one.happened for one in results), Counter())
    known: Counter[str] = sum((one.known for one in results), Counter())
    for what in KINDS:
        if happened[what]:
            yield f"{what}: {known[what]} of {happened[what]} ({known[what] / happened[what]:.1%})"
    yield f"false claims: {sum(len(one.false) for one in results)} in {len(results)} programs"
