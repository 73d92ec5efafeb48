"""The training step as the linter understands it, for a person to read."""

from collections.abc import Iterator
from linecache import getline

from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.stubs.torch.modules import MODULE, modules
from ta_lint.dryrun.stubs.torch.tensors import PARAMETER, Tensor
from ta_lint.dryrun.stubs.torch.training import held_by
from ta_lint.dryrun.values import Class, Function, Known, Object, Place
from ta_lint.events.event import Event

SHOWN = frozenset(
    "optimizer scheduler epoch batch forward loss backward scale unscale clip step update clear schedule train eval mode freeze unfreeze "
    "save load seed unknown".split()
)
WIDTH = 64
"""Characters of a line of source that are shown."""


def explain(machine: Machine, path: str) -> Iterator[str]:
    """The lines of the explanation of a file: what each entry does, loop by loop, and what is not known."""
    events = [event for event in machine.events if event.place.file == path and event.action in SHOWN]
    entries = dict.fromkeys(event.entry for event in events)
    for entry in entries:
        own = [event for event in events if event.entry is entry]
        if entry is not None:
            yield ""
            yield _head(entry)
        yield from _actions(own)
    unknown = dict.fromkeys(why for event in events for why in event.detail.get("open", ()))
    if unknown:
        yield ""
        yield "not known:"
        yield from (f"  {why}" for why in unknown)


def _head(entry: Function | Class) -> str:
    line = getattr(entry.node, "lineno", 0)
    if isinstance(entry, Class):
        return f"{entry.name}, line {line}: nothing here runs it, so its framework does, on arguments that are guessed"
    return f"{entry.name}, line {line}: nothing here calls it, so its arguments are guessed"


def _actions(events: list[Event]) -> Iterator[str]:
    """Each action in the settled pass of the loops around it."""
    last: dict[Place, int] = {}
    for event in events:
        for loop, number in event.passes:
            last[loop] = max(number, last.get(loop, 0))
    open_loops: list[Place] = []
    said: tuple[int, str] | None = None
    for event in events:
        if any(number != last[loop] for loop, number in event.passes):
            continue
        loops = [loop for loop, _ in event.passes]
        shared = 0
        while shared < min(len(loops), len(open_loops)) and loops[shared] == open_loops[shared]:
            shared += 1
        for depth in range(shared, len(loops)):
            line = loops[depth].line if loops[depth].file == event.place.file else ""
            yield f"{line:>5}  {'  ' * depth}{_source(loops[depth])}"
        open_loops = loops
        what = _said(event)
        if what and said != (event.place.line, what):
            said = event.place.line, what
            text = f"{event.place.line:>5}  {'  ' * len(loops)}{_source(event.place)}"
            yield f"{text:<{WIDTH + 8}} {'' if event.certain else 'perhaps: '}{what}"


def _source(place: Place) -> str:
    text = getline(place.file, place.line).strip()
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"


def _said(event: Event) -> str:
    """What an action does, in words; empty where the line says it all the same."""
    subject = event.subject
    if event.action == "optimizer" and isinstance(subject, Object):
        group = held_by(subject)
        return f"{_class(subject)} of {len(group.parameters)} parameters{'' if group.complete else ', and others that are not known'}"
    if event.action == "backward":
        roots, more = len(event.detail["roots"]), event.detail["open"] or event.detail["perhaps"]
        cuts = {cut.how for cut in event.detail["cuts"]} if not roots else set()
        return f"gradients reach {roots} parameters{', and others that are not known' if more else ''}{''.join(f'; the graph was lost: {how}' for how in sorted(cuts))}"
    if event.action == "step" and isinstance(subject, Object):
        return f"step of {_class(subject)}"
    if event.action == "forward" and isinstance(subject, Object):
        training = event.detail["training"]
        mode = (
            "training mode"
            if training == Known(True)
            else "evaluation mode"
            if training == Known(False)
            else "a mode that is not known"
        )
        recorded = {True: "", False: ", not recorded", None: ", perhaps not recorded"}[
            event.detail["recording"]
        ]
        return (
            ""
            if event.detail["inside"] or not _is_whole(subject)
            else f"{_class(subject)} in {mode}{recorded}"
        )
    words = {
        "loss": f"loss: {event.detail.get('by', '')}", "clear": "gradients are cleared", "clip": "gradients are clipped",
        "schedule": "the schedule goes on", "unknown": "code out of sight gets the optimizer", "epoch": "", "batch": "",
    }  # fmt: skip
    return words.get(event.action, event.action)


def _class(subject: Object) -> str:
    return subject.cls.name.rpartition(".")[2]


def _is_whole(module: Object) -> bool:
    """Whether a module has layers or parameters of its own."""
    return module.cls.is_a(MODULE) and any(
        isinstance(value, Tensor) and value.cls is PARAMETER
        for _, one in modules(module)
        for value in one.fields.values()
    )
