"""The optimizers that a program builds, and how often each steps."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.stubs.torch.gradients import Conditions, held_by
from ta_lint.dryrun.stubs.torch.tensors import written_to
from ta_lint.dryrun.stubs.torch.training import OPTIMIZER
from ta_lint.dryrun.values import Object, Place, Value, options
from ta_lint.events.event import Event
from ta_lint.events.loop import Condition, Stepped


@dataclass(slots=True)
class _Built:
    """The optimizers that one place builds: one, or one of several classes, as a setting says."""

    stepped: Stepped
    entry: Value | None
    certain: bool
    before: int
    """The steps of its entry before it was built."""
    objects: list[Object] = field(default_factory=list)
    lost: bool = False
    is_given: bool = False
    """Whether nothing here builds it: who calls this may step it, unless another one steps beside it."""

    @property
    def held(self) -> set[int]:
        """The parameters that they hold."""
        return {id(each) for one in self.objects for each in held_by(one).parameters}


def optimizers_of(events: list[Event]) -> list[Stepped]:
    """The optimizers that the program certainly builds, and how often each steps."""
    built: dict[Place, _Built] = {}
    of: dict[Object, _Built] = {}
    steps: Counter[Value | None] = Counter()
    for event in events:
        new = _new(event, of, steps[event.entry])
        if new is not None:
            one = built.setdefault(event.place, new)
            one.objects += [each for each in new.objects if each not in one.objects]
            of.update(dict.fromkeys(one.objects, one))
        if event.action == Action.STEP:
            steps[event.entry] += event.times
            for stepped in {id(of[one]): of[one] for one in options(event.subject) if one in of}.values():
                stepped.stepped.steps += event.times
        for optimizer, found in event.detail.get("before", {}).items():
            if optimizer in of:
                _note(of[optimizer], event, found)
    written = {id(written_to(event.subject)) for event in events if event.action == "write"}
    written |= {
        id(event.subject) for event in events if event.action == "gradient"
    }  # the program uses it itself
    active = {id(each) for one in of if of[one].stepped.steps for each in held_by(one).parameters}
    for one in built.values():
        one.stepped.others = steps[one.entry] - one.before - one.stepped.steps
        one.stepped.shares = not one.stepped.steps and not active.isdisjoint(one.held)
    return [
        one.stepped
        for one in built.values()
        if not one.lost and (one.certain or len(one.objects) > 1)
        if one.stepped.steps or written.isdisjoint(one.held)
    ]


def _new(event: Event, known: Collection[Object], before: int) -> _Built | None:
    """The optimizer that an event makes known: where it is built, or where one that the program is given is cleared."""
    subject = event.subject
    if not isinstance(subject, Object):
        return None
    given = event.action == Action.CLEAR and subject.cls.is_a(OPTIMIZER) and subject not in known
    if event.action != "optimizer" and not given:
        return None
    stepped = Stepped(position(event.place), subject.cls.name.rpartition(".")[2])
    return _Built(stepped, event.entry, event.certain, before, [subject], is_given=given)


def _note(built: _Built, event: Event, found: Conditions) -> None:
    """What an event says of an optimizer to whose gradients it does something."""
    one = built.stepped
    if event.action == Action.UNKNOWN and not event.detail.get("computes"):
        built.lost = True
    elif not one.steps:
        one.cleared += event.times if event.action == Action.CLEAR and not built.is_given else 0
        one.had_gradients = one.had_gradients or Condition.FRESH in found
