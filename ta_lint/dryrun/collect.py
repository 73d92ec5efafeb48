"""The facts of a dry run: what its events say about each optimizer, in the terms in which a real run is described."""

from dataclasses import dataclass, field

from ta_lint.core.protocol import Action
from ta_lint.dryrun.stubs.torch.gradients import Conditions, held_by
from ta_lint.dryrun.stubs.torch.tensors import Tensor
from ta_lint.dryrun.stubs.torch.training import OPTIMIZER
from ta_lint.dryrun.values import Object, Place, Value
from ta_lint.events import place
from ta_lint.events.event import Event
from ta_lint.events.loop import Condition, Loop, LoopHistory, ObservedAction, Stepped
from ta_lint.events.run import Run


def run_of(events: list[Event]) -> Run:
    """The facts that these events make."""
    histories: dict[tuple[Object, Place | None], LoopHistory] = {}
    pending: dict[Object, list[ObservedAction]] = {}
    for event in events:
        for optimizer, found in event.detail.get("before", {}).items():
            loop = event.passes[0][0] if event.passes else None
            history = histories.setdefault((optimizer, loop), LoopHistory(position(loop) if loop else None))
            _take(history, pending.setdefault(optimizer, []), event, found)
    return Run(Loop(histories=list(histories.values()), optimizers=_optimizers(events)))


def _take(history: LoopHistory, pending: list[ObservedAction], event: Event, found: Conditions) -> None:
    """One more action after the last step of an optimizer."""
    action = Action(event.action)
    certain = len(found) == 1 and not event.some_pass
    condition = next(iter(found)) if certain else Condition.UNKNOWN
    pending.append(ObservedAction(action, position(event.place), condition))
    if action is Action.STEP:
        history.patterns[tuple((one, 1) for one in pending)] += event.times
        history.kept += condition is Condition.STALE
        pending.clear()


@dataclass(slots=True)
class _Built:
    """The optimizers that one place builds: one, or one of several classes, as a setting says."""

    stepped: Stepped
    entry: Value | None
    certain: bool
    objects: list[Object] = field(default_factory=list)
    lost: bool = False
    is_given: bool = False
    """Whether nothing here builds it: who calls this may step it, unless another one steps beside it."""

    def holds(self, parameter: Value | None) -> bool:
        """Whether one of them certainly holds a parameter."""
        return any(each is parameter for one in self.objects for each in held_by(one).parameters)


def _optimizers(events: list[Event]) -> list[Stepped]:
    """The optimizers that the program certainly builds, and how often each steps."""
    built: dict[Place, _Built] = {}
    for event in events:
        subject = event.subject
        if event.action == "optimizer" and isinstance(subject, Object):
            kind = subject.cls.name.rpartition(".")[2]
            new = _Built(Stepped(position(event.place), kind), event.entry, event.certain)
            built.setdefault(event.place, new).objects.append(subject)
        elif event.action == Action.CLEAR and isinstance(subject, Object) and subject.cls.is_a(OPTIMIZER):
            known = any(subject in one.objects for one in built.values())
            if not known:  # an argument: it is where it is cleared
                received = Stepped(position(event.place), subject.cls.name.rpartition(".")[2])
                built[event.place] = _Built(received, event.entry, event.certain, [subject], is_given=True)
        for one in built.values():
            _note(one, event)
    return [one.stepped for one in built.values() if not one.lost and (one.certain or len(one.objects) > 1)]


def _note(built: _Built, event: Event) -> None:
    """What an event says of an optimizer."""
    one, before = built.stepped, event.detail.get("before", {})
    found = [conditions for optimizer, conditions in before.items() if optimizer in built.objects]
    subject = event.subject
    if event.action == "write" and isinstance(subject, Tensor):
        built.lost = built.lost or built.holds(subject.fields.get("of", subject))
    elif event.action == Action.UNKNOWN:
        built.lost = built.lost or bool(found)
    elif event.action == Action.STEP and found:
        one.steps += event.times
    elif event.action == Action.STEP and event.entry is built.entry:
        one.others += event.times
        shared = (each for other in before for each in held_by(other).parameters)
        one.shares = one.shares or any(map(built.holds, shared))
    elif found and not one.steps:
        one.cleared += event.times if event.action == Action.CLEAR and not built.is_given else 0
        one.had_gradients = one.had_gradients or any(Condition.FRESH in each for each in found)


def position(where: Place) -> place.Place:
    """A place of the dry run, as both observers name it."""
    node = where.node
    return place.Place(
        where.file,
        where.line,
        getattr(node, "end_lineno", None),
        getattr(node, "col_offset", None),
        getattr(node, "end_col_offset", None),
    )
