"""What the loaders of a program hand out, and which batches a step follows."""

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.evaluated import evaluated_of
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.machine.counts import number_of
from ta_lint.dryrun.streams import Stream
from ta_lint.dryrun.stubs.torch import data
from ta_lint.dryrun.stubs.torch.costs import is_cheap, workers_of
from ta_lint.dryrun.values import NONE, Known, Object
from ta_lint.events.event import Event
from ta_lint.events.loaders import Loader, LoaderPass


def loaders_of(events: list[Event]) -> list[Loader]:
    """The loaders that the program builds or goes over."""
    evaluated, followed = evaluated_of(events), _Followed(events).found
    for own, taken in followed.items():
        taken.loader.held_out = own in evaluated
    return [one.loader for one in followed.values()]


class _Taken:
    """A loader, and its passes."""

    def __init__(self, own: Object, first: Event) -> None:
        is_own = own.cls is data.LOADER and not first.by_library
        self.loader = Loader(
            position(own.made or first.place),
            sampler=data.sampler_of(own),
            shuffled_beside=data.shuffled_beside(own) if is_own else "",
            draws_once=data.draws_once(own),
            workers=workers_of(own) if is_own else None,
            is_cheap=is_cheap(own.fields.get("dataset", NONE)),
            batch_size=number_of(own.fields.get("batch_size", Known(1))),
            drop_last=data.drops_last(own),
        )
        self.passes: dict[Stream, tuple[LoaderPass, Event]] = {}
        self.kept: Stream | None = None
        """The pass whose batches are kept, to come again."""


class _Followed:
    """The loaders, followed through the events."""

    def __init__(self, events: list[Event]) -> None:
        self.found: dict[Object, _Taken] = {}
        self._in_hand: dict[Stream, Event] = {}
        """The last batch of each pass, until a step follows it."""
        for event in events:
            if event.action == "loader":
                self.found.setdefault(event.subject, _Taken(event.subject, event))
            elif event.action == Action.EPOCH:
                self._begin(event)
            elif event.action == Action.BATCH:
                self._take(event)
            elif event.action == "epoch is over":
                self._of(event)[0].ended = True
                self._in_hand.pop(event.detail["iterator"], None)
            elif event.action == "keep" and event.subject in self.found:
                taken = self.found[event.subject]
                taken.kept = next(reversed(taken.passes), None)
            elif event.action == Action.STEP:
                self._step(event)
        for taken in self.found.values():
            _count_restarts(taken)

    def _of(self, event: Event) -> tuple[LoaderPass, Event]:
        return self.found[event.subject].passes[event.detail["iterator"]]

    def _begin(self, event: Event) -> None:
        taken = self.found.setdefault(event.subject, _Taken(event.subject, event))
        begun = LoaderPass(begun=position(event.place))
        taken.passes[event.detail["iterator"]] = begun, event
        taken.loader.passes = [*taken.loader.passes, begun]
        taken.loader.epochs += event.times
        taken.loader.length, taken.loader.samples = event.detail["length"], event.detail["counts"][0]

    def _take(self, event: Event) -> None:
        now, _ = self._of(event)
        now.batches += 1
        if now.batches == 1 and not event.by_library:
            now.shuffled_by = event.detail["shuffled_by"]
        if not event.detail["by_next"]:  # a loop begins, or goes on: what was taken before is of no use in it
            depth = len(event.passes)
            self._in_hand = {at: one for at, one in self._in_hand.items() if len(one.passes) < depth}
        self._in_hand[event.detail["iterator"]] = event

    def _step(self, event: Event) -> None:
        used = {at: one for at, one in self._in_hand.items() if _is_in_same_pass(one, event)}
        for iterator, batch in used.items():
            now, begun = self._of(batch)
            now.steps += 1
            del self._in_hand[iterator]
            if self.found[batch.subject].kept is iterator and not begun.passes and len(used) == 1:
                now.replayed += event.times
                now.ended = True


def _is_in_same_pass(batch: Event, step: Event) -> bool:
    """Whether no loop has begun another pass between the two."""
    return all(one == other for one, other in zip(batch.passes, step.passes, strict=False))


def _count_restarts(taken: _Taken) -> None:
    """The passes in a row that are each begun in a pass of a loop, for one batch and one step."""
    streak, loader = 0, taken.loader
    for one, begun in taken.passes.values():
        restarts = (
            begun.in_each_pass
            and not (begun.detail["goes_on"] or begun.by_library)
            and one.batches == one.steps == 1
        )
        again = begun.times if any(number for _, number in begun.passes) else 0
        streak = streak + again if restarts and not one.ended else 0
        if streak > loader.restarted:
            loader.restarted, loader.restarted_at = streak, one.begun
