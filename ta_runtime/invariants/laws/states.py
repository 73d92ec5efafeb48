"""Laws of parameters and buffers: what stays as it is from step to step."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator

from ta_runtime.invariants.laws.law import Breach, Law, is_new
from ta_runtime.invariants.words import quoted
from ta_runtime.trace.event import Event, Flag

_TOGETHER = 2
"""Contents that two parameters had at the same time, after which they count as tied: of one they may be constants."""
_LARGE = 16
"""Elements from which on contents are not equal by chance: of one, they are where an optimizer moves by signs alone."""
_STATISTICS = ("running_mean", "running_var")
_CHANGED, _TRAINING = int(Flag.CHANGED), int(Flag.TRAINING)


class DtypeStays(Law):
    """It is lost where a checkpoint or a conversion brings another."""

    name = "dtype-stays"
    says = "a parameter keeps its dtype from step to step"
    wanted = frozenset({("parameter", "")})

    def __init__(self) -> None:
        super().__init__()
        self._dtypes: dict[str, str] = {}

    def see(self, event: Event) -> Iterable[Breach]:
        before = self._dtypes.get(event.subject)
        if before is None or is_new(event):
            self._dtypes[event.subject] = event.dtype
            return ()
        self.is_tested = True
        if before == event.dtype:
            return ()
        self._dtypes[event.subject] = event.dtype
        message = "a parameter has another dtype than before"
        return [Breach(event, message, {"first": event.subject, "was": before, "is": event.dtype})]


class TiedStayTied(Law):
    """A name that two places of a model give to one tensor, or to two that change together."""

    name = "tied-stay-tied"
    says = "two parameters that were equal while they changed stay equal"
    wanted = frozenset({("parameter", "")})

    def __init__(self) -> None:
        super().__init__()
        self._now: dict[str, Event] = {}
        self._groups: list[tuple[frozenset[str], set[int]]] | None = (
            None  # of equal ones, and what they held so far
        )

    def see(self, event: Event) -> Iterable[Breach]:
        if event.digest is not None and _is_large(event):
            self._now[event.subject] = event
        return ()

    def step_over(self, step: int) -> Iterator[Breach]:
        now, self._now = self._now, {}
        if not now:
            return
        if self._groups is None or any(map(is_new, now.values())):
            others = [group for group in self._groups or () if group[0].isdisjoint(now)]
            self._groups = others + [(names, set()) for names in _alike(now, frozenset(now))]
        kept: list[tuple[frozenset[str], set[int]]] = []
        for names, contents in self._groups:
            if not names <= now.keys():  # not all of its models took part
                kept.append((names, contents))
                continue
            parts = list(_alike(now, names))
            if len(contents) >= _TOGETHER:
                self.is_tested = True
                if parts != [names]:
                    first, second, *_ = sorted(names)
                    message = f"the parameters `{first}` and `{second}` are no longer equal"
                    yield Breach(now[second], message, {"tied": len(names)})
            for part in parts:
                content = now[min(part)].digest
                assert content is not None
                kept.append((part, {*contents, content} if len(contents) < _TOGETHER else contents))
        self._groups = kept


class StatisticsRest(Law):
    """Looks at two steps in a row, between which no checkpoint was loaded, and at modules that were called in between."""

    name = "statistics-rest"
    says = "the statistics of a BatchNorm that was only called in evaluation mode stay as they are"
    wanted = frozenset(
        {("buffer", ""), ("checkpoint", "torch.nn.Module.load_state_dict")}
        | {
            ("module", f"torch.nn.{kind}")
            for kind in ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")
        }
    )

    def __init__(self) -> None:
        super().__init__()
        self._evaluated: dict[
            str, bool
        ] = {}  # modules that were called since their buffers were told: always so
        self._told: dict[str, int] = {}  # the step in which they were
        self._loaded = -1

    def see(self, event: Event) -> Iterator[Breach]:
        if event.kind == "checkpoint":
            self._loaded = event.step
        elif event.kind == "module":
            calls = self._evaluated
            calls[event.subject] = calls.get(event.subject, True) and not event.flags & _TRAINING
        elif event.kind == "buffer" and ("module", event.name) in self.wanted:
            yield from self._judge(event)

    def _judge(self, event: Event) -> Iterator[Breach]:
        module, _, buffer = event.subject.rpartition(".")
        if buffer not in _STATISTICS:
            return
        in_a_row = self._told.get(event.subject) == event.step - 1 and self._loaded < event.step - 1
        self._told[event.subject] = event.step
        if in_a_row and self._evaluated.get(module):
            self.is_tested = True
            if event.flags & _CHANGED:
                message = f"a {quoted(event.name)} in evaluation mode changes its statistics"
                yield Breach(event, message, {"first": event.subject})
        if buffer == _STATISTICS[-1]:
            self._evaluated.pop(module, None)


def _is_large(state: Event) -> bool:
    lengths = state.shape.split(",")
    return math.prod(int(length) for length in lengths if length.isdigit()) >= _LARGE


def _alike(states: dict[str, Event], names: frozenset[str]) -> Iterator[frozenset[str]]:
    """Those of these names that have equal contents, where there are several."""
    groups: dict[int | None, list[str]] = defaultdict(list)
    for name in names:
        groups[states[name].digest].append(name)
    yield from (frozenset(group) for group in groups.values() if len(group) > 1)
