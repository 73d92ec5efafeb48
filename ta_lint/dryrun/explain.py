"""A training as the dry run understands it: its loops, what each line does to the training, and what is not known.

`explanation` gathers that, `text` writes it for a person, and `dataclasses.asdict` makes it what JSON holds.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from linecache import getline
from os.path import relpath

from ta_lint.dryrun.machine.calling import STUB
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.stubs.torch.gradients import held_by
from ta_lint.dryrun.stubs.torch.modules import MODULE, modules
from ta_lint.dryrun.stubs.torch.tensors import is_parameter
from ta_lint.dryrun.values import Class, Function, Known, Object, Place
from ta_lint.events.event import Event

SHOWN = frozenset(
    "optimizer scheduler forward loss backward scale unscale clip step update clear schedule train eval mode freeze unfreeze "
    "save load seed unknown".split()
)
"""The actions that are told."""
WIDTH = 64
"""Characters of a line of source that are shown."""
MOST_NAMES = 6
"""Parameters that are named one by one."""


@dataclass(frozen=True, slots=True)
class Told:
    """One line of the program, and what it does. `does` is empty for a loop, whose lines follow one level deeper."""

    file: str
    line: int
    depth: int
    source: str
    does: str
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Part:
    """What the script does, or what one function does that nothing here calls."""

    function: str | None
    line: int
    told: tuple[Told, ...]
    framework: bool = False
    """Whether it is a class that its framework runs."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that is not known, where that matters, and why."""

    file: str
    line: int
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """A training in words. `gaps` are what is not known, the most harmful first."""

    path: str
    parts: tuple[Part, ...]
    gaps: tuple[Gap, ...]
    nobody_updates: tuple[str, ...] = ()
    """Parameters that a loss reaches and that no optimizer holds, by their names, where all optimizers are known."""


def explanation(machine: Machine, path: str, function: str | None = None) -> Explanation:
    """What a dry run of a file says, or only what happens in its function or method of this name."""
    events = [event for event in machine.events if event.action in SHOWN]
    if function is not None:
        events = [
            event for event in events if any(_is_called(one, function, path) for one in event.functions)
        ]
    parts = []
    for entry in dict.fromkeys(event.entry for event in events):
        own = [event for event in events if event.entry is entry]
        name, line = (None, 1) if entry is None else (_full_name(entry), entry.node.lineno)
        if told := tuple(_lines(own)):
            parts.append(Part(name, line, told, isinstance(entry, Class)))
    return Explanation(
        path, tuple(parts), tuple(_gaps(events)), _not_updated(events) if function is None else ()
    )


def text(told: Explanation) -> Iterator[str]:
    """An explanation, line by line. Lines of other files have the file in front of them."""
    for part in told.parts:
        if part.function is not None:
            yield ""
            runs = (
                "runs it, so its framework does"
                if part.framework
                else "calls it, so its arguments are guessed"
            )
            yield f"{part.function}, line {part.line}: nothing here {runs}"
        for one in part.told:
            where = _where(one, told.path)
            source = f"{where:>5}  {'  ' * one.depth}{one.source}"
            does = f"{'' if one.certain else 'perhaps: '}{one.does}"
            yield f"{source:<{WIDTH + 8}} {does}".rstrip()
    if told.nobody_updates:
        yield ""
        yield f"a loss reaches them, and no optimizer holds them: {_names(told.nobody_updates)}"
    if told.gaps:
        yield ""
        yield "not known, the most harmful first:"
        for gap in told.gaps:
            where = str(gap.line) if gap.file == told.path else f"{_short(gap.file, told.path)}:{gap.line}"
            yield f"{where:>5}  {gap.what}{f': {gap.why}' if gap.why else ''}"


def _is_called(function: Function, name: str, path: str) -> bool:
    return function.frame.file == path and name in (function.name, _full_name(function))


def _full_name(function: Function | Class) -> str:
    return (
        function.name
        if isinstance(function, Class) or function.owner is None
        else f"{function.owner.name}.{function.name}"
    )


def _where(told: Told, path: str) -> str:
    """The line of what is told; a loop of a framework has none in the program."""
    if told.file.endswith(STUB):
        return ""
    return str(told.line) if told.file == path else f"{_short(told.file, path)}:{told.line}"


def _short(file: str, beside: str) -> str:
    return relpath(file, beside.rpartition("/")[0] or ".")


def _lines(events: list[Event]) -> Iterator[Told]:
    """Each action in the settled pass of the loops around it."""
    last: dict[tuple[object, ...], int] = {}
    for event in events:
        for outer, loop, number in _passes(event):
            last[outer, loop] = max(number, last.get((outer, loop), 0))
    around: list[Place] = []
    for place, loops, certain, several in _by_line(
        event
        for event in events
        if all(number == last[outer, loop] for outer, loop, number in _passes(event))
    ):
        shared = 0
        while shared < min(len(loops), len(around)) and loops[shared] == around[shared]:
            shared += 1
        for depth in range(shared, len(loops)):
            yield _told(loops[depth], depth, "", certain=True)
        around = loops
        yield _told(place, len(loops), "; ".join(several), certain=certain)


def _passes(event: Event) -> Iterator[tuple[tuple[tuple[Place, int], ...], Place, int]]:
    """The loops around an action, each with the passes around it and the number of its own: it may take fewer passes in a later epoch."""
    for depth, (loop, number) in enumerate(event.passes):
        yield event.passes[:depth], loop, number


def _by_line(events: Iterable[Event]) -> Iterator[tuple[Place, list[Place], bool, tuple[str, ...]]]:
    """What a line does in one go, with the loops around it."""
    said: set[tuple[str, int, str]] = set()
    spoken = ((event, does) for event in events if (does := _does(event)))
    for (file, line, certain), group in groupby(spoken, lambda one: _on_one_line(one[0])):
        together = list(group)
        new = [does for does in dict.fromkeys(does for _, does in together) if (file, line, does) not in said]
        said.update((file, line, does) for does in new)
        first = together[0][0]
        if new:
            yield first.place, [loop for loop, _ in first.passes], certain, tuple(new)


def _on_one_line(event: Event) -> tuple[str, int, bool]:
    return event.place.file, event.place.line, event.certain


def _told(place: Place, depth: int, does: str, *, certain: bool) -> Told:
    source = getline(place.file, place.line).strip()
    source = source if len(source) <= WIDTH else f"{source[: WIDTH - 1]}…"
    return Told(place.file, place.line, depth, source, does, certain)


_WORDS = {
    "clear": "gradients are cleared",
    "clip": "gradients are clipped",
    "schedule": "the schedule goes on",
    "scale": "the loss is scaled",
    "unscale": "gradients are unscaled",
    "unknown": "code out of sight gets the optimizer",
    "train": "training mode",
    "eval": "evaluation mode",
    "mode": "a mode that is not known",
    "freeze": "frozen",
    "unfreeze": "no longer frozen",
    "save": "saved",
    "load": "weights are loaded",
    "seed": "random numbers are seeded",
    "update": "the scale is updated",
    "scheduler": "a schedule",
}
"""What an action does, where its name does not say it."""


def _does(event: Event) -> str:
    """What an action does, in words; empty where there is nothing to say."""
    subject, detail = event.subject, event.detail
    if event.action == "loss":
        return f"loss: {detail.get('by', '')}"
    if event.action == "unknown" and subject is None:
        return "code out of sight may clear gradients"
    if not isinstance(subject, Object):
        return _WORDS.get(event.action, event.action)
    if event.action == "optimizer":
        group = held_by(subject)
        return f"{_class(subject)} of {_parameters(len(group.parameters), all_known=group.complete)}"
    if event.action == "backward":
        all_known = not (detail["open"] or detail["perhaps"])
        leaves = detail["roots"] - detail["flat"]
        reached = _parameters(len(leaves), all_known=all_known)
        cuts = sorted({cut.how for cut in detail["cuts"]}) if not leaves else []
        return f"gradients reach {reached}{''.join(f'; the graph was lost: {how}' for how in cuts)}"
    if event.action == "step":
        return f"step of {_class(subject)}"
    if event.action == "forward":
        return _of_call(event, subject)
    if event.action in ("train", "eval", "mode", "freeze", "unfreeze") and subject.cls.is_a(MODULE):
        return f"{_class(subject)}: {_WORDS[event.action]}"
    return _WORDS.get(event.action, event.action)


def _of_call(event: Event, module: Object) -> str:
    if event.detail["within"] or not _has_parameters(module):
        return ""
    training, recording = event.detail["training"], event.detail["recording"]
    mode = (
        ("training mode" if training.value else "evaluation mode")
        if isinstance(training, Known)
        else "a mode that is not known"
    )
    recorded = {True: "", False: ", not recorded", None: ", perhaps not recorded"}[recording]
    return f"{_class(module)} in {mode}{recorded}"


def _class(subject: Object) -> str:
    return subject.cls.name.rpartition(".")[2]


def _parameters(count: int, *, all_known: bool) -> str:
    if not count and not all_known:
        return "parameters that are not known"
    return f"{count} parameter{'' if count == 1 else 's'}{'' if all_known else ', and others that are not known'}"


def _names(names: tuple[str, ...]) -> str:
    counted = [f"{count} x {name}" if count > 1 else name for name, count in Counter(names).items()]
    more = len(counted) - MOST_NAMES
    return ", ".join(counted[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _has_parameters(module: Object) -> bool:
    return module.cls.is_a(MODULE) and any(
        is_parameter(value) for _, one in modules(module) for value in one.fields.values()
    )


def _gaps(events: list[Event]) -> Iterable[Gap]:
    """What is not known: first of what the losses reach, then of what is updated, then of modes."""
    found: dict[Gap, int] = {}
    for event in events:
        file, line = event.place.file, event.place.line
        if event.action == "backward":
            for why in event.detail["open"]:
                found.setdefault(Gap(file, line, "what the loss reaches", why), 0)
        elif event.action == "unknown" and event.subject is not None:
            found.setdefault(Gap(file, line, "what becomes of the optimizer", "code out of sight gets it"), 1)
        elif event.action == "optimizer" and isinstance(event.subject, Object):
            if not held_by(event.subject).complete:
                found.setdefault(Gap(file, line, f"all that {_class(event.subject)} holds", ""), 1)
        elif event.action == "forward" and not event.detail["within"] and _has_parameters(event.subject):
            if not isinstance(event.detail["training"], Known):
                found.setdefault(Gap(file, line, f"the mode of {_class(event.subject)}", ""), 2)
            if event.detail["recording"] is None:
                found.setdefault(Gap(file, line, f"whether autograd records {_class(event.subject)}", ""), 2)
    return sorted(found, key=lambda gap: found[gap])


def _not_updated(events: list[Event]) -> tuple[str, ...]:
    optimizers = [
        event.subject
        for event in events
        if event.action in ("optimizer", "step") and isinstance(event.subject, Object)
    ]
    groups = [held_by(one) for one in optimizers]
    if not groups or not all(group.complete for group in groups):
        return ()
    held = {id(one) for group in groups for one in group.parameters}
    reached = {
        id(one)
        for event in events
        if event.action == "backward" and event.entry is None
        for one in event.detail["roots"]
    }
    return tuple(name for one, name in _names_of(events).items() if one in reached - held)


def _names_of(events: list[Event]) -> dict[int, str]:
    """The parameters by the names that the modules give them whose calls are told."""
    names: dict[int, str] = {}
    for event in events:
        if event.action == "forward" and isinstance(event.subject, Object) and event.subject.cls.is_a(MODULE):
            for prefix, module in modules(event.subject):
                for key, value in module.fields.items():
                    if is_parameter(value):
                        inner = f"{prefix}.{key}" if prefix else str(key)
                        names.setdefault(id(value), f"{_class(event.subject)}.{inner}")
    return names
