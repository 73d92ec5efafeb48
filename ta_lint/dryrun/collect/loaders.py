"""What the loaders of a program hand out, and which batches a step follows."""

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.evaluated import evaluated_of
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.machine.counts import number_of
from ta_lint.dryrun.sources import of_rank
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
        self._open: dict[Stream, Event] = {}
        """The last batch of each pass that a loop goes over, until something happens outside of that loop."""
        for event in events:
            self._leave(event)
            if event.action == "loader":
                self.found.setdefault(event.subject, _Taken(event.subject, event))
            elif event.action == Action.EPOCH:
                self._begin(event)
            elif event.action == Action.BATCH:
                self._take(event)
            elif event.action == "epoch is over":
                self._of(event)[0].ended = True
                if self.found[event.subject].kept is not event.detail["iterator"]:
                    self._in_hand.pop(event.detail["iterator"], None)
            elif event.action == "keep" and event.subject in self.found:
                taken = self.found[event.subject]
                taken.kept = next(reversed(taken.passes), None)
            elif event.action == Action.STEP:
                self._step(event)
        for taken in self.found.values():
            _count_restarts(taken)

    def _leave(self, event: Event) -> None:
        """Something happens, and perhaps outside of the loops. Of a pass in which a program breaks off nobody knows that it leaves it."""
        if event.action == "broken off":
            for batch in self._open.values():
                self._of(batch)[0].ended = True
        self._open = {at: one for at, one in self._open.items() if _is_around(one, event)}

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
            seed = now.shuffled_by and now.shuffled_by[0]
            self.found[event.subject].loader.seeded_by_rank |= of_rank(seed) is not None
        if not event.detail["by_next"]:  # a loop begins, or goes on: what was taken before is of no use in it
            depth = len(event.passes)
            self._in_hand = {at: one for at, one in self._in_hand.items() if len(one.passes) < depth}
            self._open[event.detail["iterator"]] = event
        self._in_hand[event.detail["iterator"]] = event

    def _step(self, event: Event) -> None:
        used = {at: one for at, one in self._in_hand.items() if _is_in_same_pass(one, event)}
        all_kept = all(self.found[one.subject].kept is at for at, one in used.items())
        for iterator, batch in used.items():
            now, begun = self._of(batch)
            now.steps += 1
            del self._in_hand[iterator]
            if all_kept and _outlives_loops(begun):
                now.replayed += event.times
                now.steps += event.times - 1
                now.ended = True


def _is_around(batch: Event, event: Event) -> bool:
    """Whether something happens in the loop that got a batch, in the same passes of those around that."""
    depth = len(batch.passes)
    is_inside = len(event.passes) > depth or event.action == Action.BATCH
    return event.entry is batch.entry and is_inside and event.passes[:depth] == batch.passes


def _outlives_loops(begun: Event) -> bool:
    """Whether a pass goes on through all loops: it begins before them, or a generator goes on with it that a pass before has begun."""
    numbers = [number for _, number in begun.passes]
    return not numbers or (begun.detail["goes_on"] and numbers[0] > 0 and not any(numbers[1:]))


def _is_in_same_pass(batch: Event, step: Event) -> bool:
    """Whether no loop has begun another pass between the two."""
    return all(one == other for one, other in zip(batch.passes, step.passes, strict=False))


def _count_restarts(taken: _Taken) -> None:
    """The passes in a row that are each begun in a pass of a loop, for one batch and one step."""
    streak, loader, passes = 0, taken.loader, list(taken.passes.values())
    go_on = [bool(begun.detail["goes_on"]) for _, begun in passes] + [False]
    for number, (one, begun) in enumerate(passes):
        restarts = (
            begun.in_each_pass
            and not (go_on[number] or go_on[number + 1] or begun.by_library)
            and one.batches == one.steps == 1
        )
        again = begun.times if any(number for _, number in begun.passes) else 0
        streak = streak + again if restarts and not one.ended else 0
        if streak > loader.restarted:
            loader.restarted, loader.restarted_at = streak, one.begun
